//! Values that are written as one of a few names.

use crate::xml::violation::one_of_names_in_violation;

/// A value that is written as a name.
pub trait NamedValue: Copy + PartialEq + 'static {
    /// Every value with its name.
    const NAMES: &'static [(Self, &'static str)];

    /// The name as it is written.
    fn name(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(known, _)| *known == self)
            .map_or("", |(_, name)| name)
    }

    /// The value of this name.
    fn parse(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|(_, known)| *known == name).map(|(value, _)| *value)
    }
}

/// Defines an enum whose values are written as the names beside them.
macro_rules! named_values {
    ($(#[$attr:meta])* $vis:vis enum $named:ident {
        $($(#[$doc:meta])* $value:ident = $word:literal,)*
    }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $named {
            $($(#[$doc])* $value,)*
        }

        impl $crate::xml::NamedValue for $named {
            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$value, $word)),*];
        }

        impl AsRef<str> for $named {
            fn as_ref(&self) -> &str {
                $crate::xml::NamedValue::name(*self)
            }
        }

        impl ::serde::Serialize for $named {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::xml::NamedValue::name(*self))
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $named {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <String as ::serde::Deserialize>::deserialize(deserializer)?;
                let value = <Self as $crate::xml::NamedValue>::parse(&name);
                value.ok_or_else(|| ::serde::de::Error::custom(format!("{name:?} is none of its names")))
            }
        }
    };
}

pub(crate) use named_values;

/// Defines an enum of values that the service has beside its documents: each has one word in documents, in the store and in answers.
macro_rules! service_values {
    ($(#[$attr:meta])* pub enum $named:ident {
        $($(#[$doc:meta])* $value:ident = $word:literal,)*
    }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $named {
            $($(#[$doc])* $value,)*
        }

        impl $named {
            /// Every value.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            /// The word that is stored and shown.
            pub fn word(self) -> &'static str {
                $crate::xml::NamedValue::name(self)
            }

            /// The value that a word names.
            pub fn from_word(word: &str) -> Option<Self> {
                $crate::xml::NamedValue::parse(word)
            }
        }

        impl $crate::xml::NamedValue for $named {
            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$value, $word)),*];
        }

        impl std::fmt::Display for $named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

pub(crate) use service_values;

/// Reads a name.
pub(crate) fn parse_name<T: NamedValue>(text: &str) -> Result<T, String> {
    let names: Vec<&str> = T::NAMES.iter().map(|(_, name)| *name).collect();
    T::parse(text).ok_or_else(|| format!("{} is expected", one_of_names_in_violation(&names)))
}
