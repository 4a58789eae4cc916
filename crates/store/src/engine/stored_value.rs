//! The values that are stored, each in one column or in several that follow each other: how they are written, and how they are read
//! from a row.

use std::borrow::Cow;

use domain::access::Role;
use domain::agreement::{
    Account, AgreementState, CompositorChoice, Currency, EventKind, Guarantee, GuaranteeAtPeer, HeldAtPeer,
    Job, Money, NegotiationRole, OfferState, OfferTerms, PartyEventKind, PlacementConstraints, PostingKind,
    ProposalReason, RecordedMove, RunOutcome, ServiceState, Slots, Spender, Wording,
};
use domain::change::AcceptanceEndpoint;
use scheduler::{Interval, Time, counted};
use serde::Serialize;
use uuid::Uuid;

use super::columns::{Columns, read_json_column};
use super::error::{Error, Result};

/// A value as the JSON that is stored.
pub(crate) fn to_stored_json<T: Serialize>(value: &T) -> String {
    // The records that are kept as JSON are structs of strings and words: writing them cannot fail.
    serde_json::to_string(value).expect("a record of strings and words is JSON")
}

/// A value for a placeholder. A column holds one of these, or nothing.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Id(Option<Uuid>),
    Bytes(Option<Cow<'a, [u8]>>),
}

impl Value<'_> {
    /// The value, borrowing nothing.
    pub(crate) fn owned<'a>(self) -> Value<'a> {
        match self {
            Self::Integer(integer) => Value::Integer(integer),
            Self::Text(text) => Value::Text(text.map(|text| text.into_owned().into())),
            Self::Id(id) => Value::Id(id),
            Self::Bytes(bytes) => Value::Bytes(bytes.map(|bytes| bytes.into_owned().into())),
        }
    }
}

/// Declares the types that values are made from.
macro_rules! values {
    ($($type:ty: |$from:ident| $kind:ident($value:expr);)+) => {
        $(impl<'a> From<$type> for Value<'a> {
            fn from($from: $type) -> Self {
                Self::$kind($value)
            }
        })+
    };
}

values! {
    i64: |integer| Integer(Some(integer));
    Option<i64>: |integer| Integer(integer);
    u32: |count| Integer(Some(count.into()));
    Time: |time| Integer(Some(time.seconds()));
    &'a str: |text| Text(Some(text.into()));
    &'a String: |text| Text(Some(text.into()));
    &'a Option<String>: |text| Text(text.as_deref().map(Cow::Borrowed));
    String: |text| Text(Some(text.into()));
    Option<String>: |text| Text(text.map(Cow::Owned));
    Uuid: |id| Id(Some(id));
    Option<Uuid>: |id| Id(id);
    &'a [u8]: |bytes| Bytes(Some(bytes.into()));
}

/// A value that stands in one column or in several that follow each other.
pub(crate) trait StoredValue: Sized {
    /// The columns of a value that is not there.
    const NOTHING: &'static [Value<'static>];

    /// Reads it from the columns with these names.
    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self>;

    /// Appends the content of its columns.
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>);
}

impl Columns<'_> {
    /// The value in a column.
    pub(crate) fn get<T: StoredValue>(&self, column: &str) -> Result<T> {
        T::read(self, &[column])
    }
}

impl<T: StoredValue> StoredValue for Option<T> {
    const NOTHING: &'static [Value<'static>] = T::NOTHING;

    /// None where one of the columns is null.
    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        for column in columns {
            if row.is_null(column)? {
                return Ok(None);
            }
        }
        T::read(row, columns).map(Some)
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        match self {
            Some(value) => value.write(values),
            None => values.extend_from_slice(T::NOTHING),
        }
    }
}

/// Declares the types that take one column: its kind, and how it is read and written.
macro_rules! in_one_column {
    ($($type:ty: $kind:ident, |$row:ident, $column:ident| $read:expr, |$value:ident| $written:expr;)+) => {
        $(impl StoredValue for $type {
            const NOTHING: &'static [Value<'static>] = &[Value::$kind(None)];

            fn read($row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
                let $column = columns[0];
                $read
            }

            fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
                let $value = self;
                values.push($written.into());
            }
        })+
    };
}

in_one_column! {
    i64: Integer, |row, column| row.integer(column), |value| *value;
    u32: Integer, |row, column| row.count(column), |value| *value;
    bool: Integer, |row, column| Ok(row.integer(column)? != 0), |value| i64::from(*value);
    Time: Integer, |row, column| Ok(Time(row.integer(column)?)), |value| *value;
    String: Text, |row, column| row.text(column), |value| value;
    Uuid: Id, |row, column| row.id(column), |value| *value;
    // Words from closed lists.
    Account: Text, |row, column| row.word(column, Self::from_word), |value| value.to_string();
    AgreementState: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    EventKind: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    NegotiationRole: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    OfferState: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    PartyEventKind: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    PostingKind: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    ProposalReason: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    Role: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    ServiceState: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    // Values that are kept as JSON.
    HeldAtPeer: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    Job: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    OfferTerms: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    PlacementConstraints: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    Vec<CompositorChoice>: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    Vec<GuaranteeAtPeer>: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    Vec<Guarantee>: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    Vec<RecordedMove>: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
    Vec<String>: Text, |row, column| read_json_column(row, column), |value| to_stored_json(value);
}

/// The first second, and the first after it.
impl StoredValue for Interval {
    const NOTHING: &'static [Value<'static>] = &[Value::Integer(None), Value::Integer(None)];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        Ok(Self::new(row.get(columns[0])?, row.get(columns[1])?))
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        values.extend([self.start.into(), self.end.into()]);
    }
}

/// Millionths, and the code of the currency.
impl StoredValue for Money {
    const NOTHING: &'static [Value<'static>] = &[Value::Integer(None), Value::Text(None)];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        let micros = row.integer(columns[0])?;
        Ok(Self::new(micros, row.word(columns[1], Currency::parse)?))
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        values.extend([self.micros.into(), self.currency.code().into()]);
    }
}

/// A word, and the exit status of one that failed in `read_exit_status`.
impl StoredValue for RunOutcome {
    const NOTHING: &'static [Value<'static>] = &[Value::Text(None), Value::Integer(None)];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        let word = row.text(columns[0])?;
        let exit = row.maybe_integer("exit_status")?;
        let exit = exit.map(i32::try_from).transpose().ok().flatten();
        Self::from_words(&word, exit)
            .ok_or_else(|| Error::Corrupt(format!("outcome is {word:?} with exit status {exit:?}")))
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        values.extend([self.word().into(), self.exit().map(i64::from).into()]);
    }
}

/// An offer, or a request and the version of its template.
impl StoredValue for Wording {
    const NOTHING: &'static [Value<'static>] = &[Value::Text(None), Value::Id(None)];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        let text = row.text(columns[0])?;
        Ok(match row.maybe_id(columns[1])? {
            None => Self::Offer(text),
            Some(template) => Self::Request {
                template,
                request: text,
            },
        })
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        let (text, template) = match self {
            Self::Offer(text) => (text, None),
            Self::Request { template, request } => (request, Some(*template)),
        };
        values.extend([text.into(), template.into()]);
    }
}

/// The greatest number of nodes, the first start, the last end, and the slots as JSON. Where there is only one, the columns of
/// the row may describe it by themselves.
impl StoredValue for Slots {
    const NOTHING: &'static [Value<'static>] = &[
        Value::Integer(None),
        Value::Integer(None),
        Value::Integer(None),
        Value::Text(None),
    ];

    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self> {
        let nodes = row.count(columns[0])?;
        let placement = Interval::read(row, &columns[1..3])?;
        if let Some(slots) = Slots::of(read_json_column(row, columns[3])?) {
            if (slots.placement(), slots.nodes()) != (placement, nodes) {
                let what = format!(
                    "its pieces are not those of {} from end to end of {placement}",
                    counted(nodes, "node")
                );
                return Err(Error::Corrupt(what));
            }
            return Ok(slots);
        }
        let mut slots = Slots::one((placement, nodes));
        slots[0].started = row.maybe_integer("started_us")?;
        // An agreement that is over without an outcome never had its slot.
        slots[0].ended = row
            .get::<Option<RunOutcome>>("outcome")?
            .and(row.maybe_integer("ended_us")?);
        Ok(slots)
    }

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        let Interval { start, end } = self.placement();
        let pieces = to_stored_json(&self.beside_row());
        values.extend([self.nodes().into(), start.into(), end.into(), pieces.into()]);
    }
}

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
