//! Agreements that wait for their decision, and the calls that report it.

use domain::agreement::{Money, Spender, Wording};
use domain::change::{AcceptanceEndpoint, CallBack};
use domain::clock::Micros;
use uuid::Uuid;

use crate::database::Store;
use crate::engine::{Columns, Record, Result, StoredValue, Value, record, statements};

/// An agreement that is not decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedAgreement {
    /// Which.
    pub agreement: Uuid,
    /// Its party.
    pub party: String,
    /// The offer, as it came.
    pub document: Wording,
    /// The endpoint for its decision.
    pub acceptance: Option<AcceptanceEndpoint>,
    /// The counter offer that it accepts, if any.
    pub offer: Option<Uuid>,
    /// The key that asked for it, where it has a cap.
    pub spender: Option<Spender>,
}

/// A call that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCallBack {
    /// The call.
    pub call: CallBack,
    /// The party of its agreement.
    pub party: String,
    /// The secret of its party that signs it, if there is one.
    pub secret: Option<String>,
}

impl Store {
    /// At most `limit` agreements that wait for their decision, oldest first, newer than `after`.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn undecided_agreements(&self, after: Uuid, limit: u32) -> Result<Vec<UndecidedAgreement>> {
        let values = [after.into(), limit.into()];
        self.read(statements::UNDECIDED, &values, UndecidedAgreement::of)
            .await
    }

    /// At most `limit` calls that are due by `now`, the longest due first, and at most `of_each` about the agreements of one
    /// party: a party with thousands of calls that fail keeps no other waiting.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn call_backs_due(&self, now: Micros, limit: u32, of_each: u32) -> Result<Vec<DueCallBack>> {
        let values = &[now.into(), limit.into(), of_each.into()];
        let due = |row: &Columns<'_>| {
            Ok(DueCallBack {
                call: CallBack::of(row)?,
                party: row.text("party")?,
                secret: row.maybe_text("secret")?,
            })
        };
        self.read(statements::CALL_BACKS_DUE, values, due).await
    }

    /// How many calls are still to be made.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn call_backs_waiting(&self) -> Result<u32> {
        let count = self.read_one(statements::CALL_BACKS_WAITING, &[], |row| row.count("waiting"));
        Ok(count.await?.unwrap_or(0))
    }

    /// Forgets a call that was made or is given up.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn forget_call_back(&self, id: Uuid) -> Result<()> {
        self.write(statements::CALL_BACK_DONE, &[id.into()])
            .await
            .map(drop)
    }

    /// Notes that a call did not succeed at `now`, and when it is to be tried again.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn call_back_failed(&self, id: Uuid, due: Micros, now: Micros) -> Result<()> {
        let values = [id.into(), due.into(), now.into()];
        self.write(statements::CALL_BACK_FAILED, &values).await.map(drop)
    }
}

record! { UndecidedAgreement: agreement, party, document "document" "template", acceptance "acceptance" "reference_parameters", offer,
spender "api_key" "cap_micros" "cap_currency" }
record! { CallBack: id, agreement, address, body, attempts, due "due_us", since "created_us" }

/// The key, which is null where there is none, and its cap.
impl StoredValue for Spender {
    const NOTHING: &'static [Value<'static>] = &[Value::Id(None), Value::Integer(None), Value::Text(None)];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        Ok(Self {
            key: row.id(columns[0])?,
            cap: Money::read(row, &columns[1..])?,
        })
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        values.push(self.key.into());
        self.cap.write(values);
    }
}

/// The address, which is null where there is none, and the parameters.
impl StoredValue for Option<AcceptanceEndpoint> {
    const NOTHING: &'static [Value<'static>] = &[Value::Text(None), Value::Text(None)];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        let parameters = row.maybe_text(columns[1])?;
        let address = row.maybe_text(columns[0])?;
        Ok(address.map(|address| AcceptanceEndpoint { address, parameters }))
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        let call_back = self.as_ref();
        let address = call_back.map(|endpoint| endpoint.address.as_str());
        let parameters = call_back.and_then(|endpoint| endpoint.parameters.as_deref());
        values.extend([address, parameters].map(|text| Value::Text(text.map(Into::into))));
    }
}
