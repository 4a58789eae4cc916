//! The columns of values and of records: how each is read from a row, and written.

use domain::agreement::{
    Account, AgreementState, CompositorChoice, Currency, EventKind, Guarantee, GuaranteeAtPeer, HeldAtPeer,
    Job, Money, OfferCreator, OfferState, OfferTerms, PartyEventKind, PlacementConstraints, PostingKind,
    ProposalReason, RunOutcome, ServiceState, Wording,
};
use scheduler::{Interval, Time};
use uuid::Uuid;

use super::connection::Value;
use super::error::{Error, Result};
use super::rows::{Columns, read_json_column, to_json};

/// A value that stands in one column or in several that follow each other.
pub(crate) trait StoredValue: Sized {
    /// The columns of a value that is not there.
    const NOTHING: &'static [Value<'static>];

    /// Reads it from the columns with these names.
    fn read(row: &Columns<'_>, columns: &[&str]) -> Result<Self>;

    /// Appends the content of its columns.
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>);
}

/// A record that is a row.
pub(crate) trait Record: Sized {
    /// Reads it.
    fn of(row: &Columns<'_>) -> Result<Self>;

    /// The content of its columns, in the order in which they are declared.
    fn values(&self) -> Vec<Value<'_>>;
}

/// Declares the columns of a record: of each field its columns, where the only one has not the same name.
macro_rules! record {
    ($record:ident: $($field:ident $($column:literal)*),+ $(,)?) => {
        impl $crate::engine::Record for $record {
            fn of(row: &$crate::engine::Columns<'_>) -> Result<Self, $crate::engine::Error> {
                use $crate::engine::value_columns::{StoredValue, record};
                Ok(Self { $($field: StoredValue::read(row, record!(@columns $field $($column)*))?),+ })
            }

            fn values(&self) -> Vec<$crate::engine::Value<'_>> {
                let mut values = Vec::new();
                $($crate::engine::value_columns::StoredValue::write(&self.$field, &mut values);)+
                values
            }
        }
    };
    (@columns $field:ident) => { &[stringify!($field)] };
    (@columns $field:ident $($column:literal)+) => { &[$($column),+] };
}
pub(crate) use record;

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
    OfferCreator: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    OfferState: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    PartyEventKind: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    PostingKind: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    ProposalReason: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    ServiceState: Text, |row, column| row.word(column, Self::from_word), |value| value.word();
    // Values that are kept as JSON.
    HeldAtPeer: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    Job: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    OfferTerms: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    PlacementConstraints: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    Vec<CompositorChoice>: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    Vec<GuaranteeAtPeer>: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    Vec<Guarantee>: Text, |row, column| read_json_column(row, column), |value| to_json(value);
    Vec<String>: Text, |row, column| read_json_column(row, column), |value| to_json(value);
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
