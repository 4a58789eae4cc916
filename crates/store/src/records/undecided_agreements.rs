//! Agreements that wait for their decision.

use domain::agreement::{Money, Spender, Wording};
use domain::change::AcceptanceEndpoint;
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

/// At most `limit` agreements that wait for their decision, oldest first, newer than `after`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn undecided_agreements(store: &Store, after: Uuid, limit: u32) -> Result<Vec<UndecidedAgreement>> {
    let values = [after.into(), limit.into()];
    store
        .read(statements::UNDECIDED, &values, UndecidedAgreement::of)
        .await
}

record! { UndecidedAgreement: agreement, party, document "document" "template", acceptance "acceptance" "reference_parameters", offer,
spender "api_key" "cap_micros" "cap_currency" }

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
