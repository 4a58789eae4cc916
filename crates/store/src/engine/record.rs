//! The records that are rows: how the columns of each are read and written, field by field.

use super::columns::Columns;
use super::error::Result;
use super::stored_value::Value;

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
                use $crate::engine::StoredValue;
                use $crate::engine::record::record;
                Ok(Self { $($field: StoredValue::read(row, record!(@columns $field $($column)*))?),+ })
            }

            fn values(&self) -> Vec<$crate::engine::Value<'_>> {
                let mut values = Vec::new();
                $($crate::engine::StoredValue::write(&self.$field, &mut values);)+
                values
            }
        }
    };
    (@columns $field:ident) => { &[stringify!($field)] };
    (@columns $field:ident $($column:literal)+) => { &[$($column),+] };
}
pub(crate) use record;
