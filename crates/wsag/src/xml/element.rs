//! Values that elements say, and structs whose fields name these elements in the order of the document.

use std::fmt::Display;

use crate::xml::children::Children;
use crate::xml::datatypes::collapse_space;
use crate::xml::document_check::{DocumentCheck, read_simple};
use crate::xml::fragment::Fragment;
use crate::xml::named_value::{NamedValue, parse_name};
use crate::xml::node::Node;
use crate::xml::ns::XSI;
use crate::xml::repeated::{check_repeated, check_repeated_element};
use crate::xml::time::DateTime;
use crate::xml::writer::{WrittenValue, Xml};

/// A value that is read, too.
pub(crate) trait Readable: Sized {
    /// Reads the element; None only after a violation was added.
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Self>;
}

/// A field of a struct: a value says one element or attribute, an option at most one, and a vector any number of elements.
pub(crate) trait Field: Sized {
    /// The value of one element.
    type Of: WrittenValue;

    /// Whether its absence is a violation.
    const REQUIRED: bool = false;

    /// The field of at most one value; none where a required one is absent.
    fn of(value: Option<Self::Of>) -> Option<Self>;

    /// The values in order.
    fn values(&self) -> &[Self::Of];

    /// Takes the elements of this name. None only after a violation was added.
    fn take<'d>(
        children: &mut Children<'_, 'd>,
        (namespace, local): (&'static str, &'static str),
        read: impl FnMut(&mut DocumentCheck, Node<'d>) -> Option<Self::Of>,
    ) -> Option<Self> {
        Self::of(if Self::REQUIRED {
            children.required(namespace, local, read)
        } else {
            children.optional(namespace, local, read)
        })
    }

    /// Reads the attribute of this name. None only after a violation was added.
    fn take_attribute<E: Display>(
        check: &mut DocumentCheck,
        node: Node<'_>,
        name: (&str, &str),
        parse: impl Fn(&str) -> Result<Self::Of, E>,
    ) -> Option<Self> {
        Self::of(if Self::REQUIRED {
            check.required_attribute(node, name, parse)
        } else {
            check.read_attribute(node, name, parse)
        })
    }
}

impl<T: WrittenValue> Field for T {
    type Of = T;

    const REQUIRED: bool = true;

    fn of(value: Option<T>) -> Option<T> {
        value
    }

    fn values(&self) -> &[T] {
        std::slice::from_ref(self)
    }
}

impl<T: WrittenValue> Field for Option<T> {
    type Of = T;

    fn of(value: Option<T>) -> Option<Option<T>> {
        Some(value)
    }

    fn values(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: WrittenValue> Field for Vec<T> {
    type Of = T;

    fn of(value: Option<T>) -> Option<Vec<T>> {
        Some(value.into_iter().collect())
    }

    fn values(&self) -> &[T] {
        self
    }

    fn take<'d>(
        children: &mut Children<'_, 'd>,
        (namespace, local): (&'static str, &'static str),
        read: impl FnMut(&mut DocumentCheck, Node<'d>) -> Option<T>,
    ) -> Option<Vec<T>> {
        Some(children.many(namespace, local, read))
    }
}

impl Xml {
    /// Writes the elements of a field under a name.
    pub(crate) fn add(&mut self, name: &'static str, field: &impl Field) {
        self.add_all(name, field.values());
    }
}

/// Defines a struct of public fields, each with the name of the elements that say it, in the order of the document, or before
/// these with `@` and the name of an attribute. It is [`WrittenValue`]. `declares` names the prefixes that the element declares.
macro_rules! written {
    ($(#[$attr:meta])* pub struct $name:ident $(declares $prefixes:tt)? {
        $($(#[$doc:meta])* pub $field:ident: $type:ty = $(@$attribute:literal)? $($element:literal)?,)*
    }) => {
        $(#[$attr])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $crate::xml::WrittenValue for $name {
            $(const PREFIXES: &'static [&'static str] = &$prefixes;)?

            fn write(&self, xml: &mut $crate::xml::Xml) {
                $(
                    $(for value in $crate::xml::Field::values(&self.$field) {
                        xml.attribute($attribute, value.as_ref());
                    })?
                    $(xml.add($element, &self.$field);)?
                )*
            }
        }
    };
}

/// As [`written!`], and the struct is [`Readable`], too. `by` names the function that reads a field's text, and behind the
/// struct's name the function that takes its children, where these are other than usual. `*` stands for all elements of other
/// namespaces.
macro_rules! element {
    ($(#[$attr:meta])* pub struct $name:ident $(declares $prefixes:tt)? $(by $children:ident)? {
        $($(#[$doc:meta])* pub $field:ident: $type:ty =
            $(@$attribute:literal by $text:ident)? $($element:literal $(by $parse:ident)?)?,)*
    }) => {
        $crate::xml::written! {
            $(#[$attr])*
            pub struct $name $(declares $prefixes)? {
                $($(#[$doc])* pub $field: $type = $(@$attribute)? $($element)?,)*
            }
        }

        impl $crate::xml::Readable for $name {
            fn read(
                check: &mut $crate::xml::DocumentCheck,
                node: $crate::xml::Node<'_>,
            ) -> Option<Self> {
                use $crate::xml::{Field, element, ns::namespace_and_local_name};
                check.attributes(node, const { &[$($(namespace_and_local_name($attribute),)?)*] });
                $($(
                    let $field = <$type as Field>::take_attribute(check, node, const { namespace_and_local_name($attribute) }, $text);
                )?)*
                element!(@children $($children)?)(check, node, |children| {
                    $($(
                        let name = const { namespace_and_local_name($element) };
                        let $field = <$type as Field>::take(children, name, element!(@reader $($parse)?));
                    )?)*
                    Some(Self { $($field: $field?,)* })
                })
            }
        }
    };
    (@children) => { $crate::xml::DocumentCheck::children_only };
    (@children $children:ident) => { $children };
    (@reader) => { $crate::xml::Readable::read };
    (@reader $parse:ident) => { $crate::xml::read_simple($parse) };
}

pub(crate) use {element, written};

impl Readable for String {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
        check.string(node)
    }
}

impl Readable for DateTime {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<DateTime> {
        read_simple(str::parse)(check, node)
    }
}

impl<T: NamedValue> Readable for T {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<T> {
        check.attributes(node, &[]);
        let text = check.text_only(node)?;
        parse_name(&text)
            .or_else(|error| {
                check.value(node, error);
                parse_name(&collapse_space(&text))
            })
            .ok()
    }
}

/// Anything, as it stands. Answers repeat it, so it is checked as far as the published schemas look into it.
impl Readable for Fragment {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Fragment> {
        // One of its parent's namespace is anything there by its parent's type; another one takes the place of a foreign element.
        if node
            .parent()
            .is_some_and(|parent| parent.namespace() == node.namespace())
        {
            check_repeated(check, node);
        } else {
            check_repeated_element(check, node);
        }
        Some(node.fragment())
    }
}

impl Fragment {
    /// Anything, as it stands, that no answer repeats; but what says that it is a string has to be one.
    pub(crate) fn verbatim(check: &mut DocumentCheck, node: Node<'_>) -> Option<Fragment> {
        if node.attribute(XSI, "type").is_some() {
            check.string(node)?;
        }
        Some(node.fragment())
    }
}
