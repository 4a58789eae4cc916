//! Values that elements say, and structs whose fields name these elements in the order of the document.

use crate::xml::datatypes::write_double;
use crate::xml::document::Node;
use crate::xml::fragment::Fragment;
use crate::xml::names::{Named, named};
use crate::xml::reader::{Check, Children, simple};
use crate::xml::time::{DateTime, Duration};
use crate::xml::writer::Xml;

/// A value that an element says.
pub(crate) trait Written {
    /// Writes the attributes and the content of the open element.
    fn write(&self, xml: &mut Xml);

    /// Writes the element under a name.
    fn put(&self, xml: &mut Xml, name: &'static str) {
        self.put_alone(xml, name, &[]);
    }

    /// Writes the element so that it could stand alone: it declares these prefixes.
    fn put_alone(&self, xml: &mut Xml, name: &'static str, prefixes: &[&str]) {
        xml.start_with(name, prefixes);
        self.write(xml);
        xml.end();
    }

    /// The element as a fragment that declares these prefixes.
    fn fragment(&self, name: &'static str, prefixes: &[&str]) -> Fragment {
        let mut xml = Xml::fragment(name, prefixes);
        self.write(&mut xml);
        xml.into_fragment()
    }

    /// The element as the root of a document.
    fn document(&self, name: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml::document(name, prefixes);
        self.write(&mut xml);
        xml
    }
}

/// A value that is read, too.
pub(crate) trait Readable: Sized {
    /// Reads the element; None only after a violation was added.
    fn read(check: &mut Check, node: Node<'_>) -> Option<Self>;
}

/// A field of a struct: a value says one element, an option at most one, and a vector any number of them.
pub(crate) trait Field: Sized {
    /// The value of one element.
    type Of: Written;

    /// Takes the elements of this name. None only after a violation was added.
    fn take<'d>(
        children: &mut Children<'_, 'd>,
        name: (&'static str, &'static str),
        read: impl FnMut(&mut Check, Node<'d>) -> Option<Self::Of>,
    ) -> Option<Self>;

    /// The values in order.
    fn values(&self) -> &[Self::Of];
}

impl<T: Written> Field for T {
    type Of = T;

    fn take<'d>(
        children: &mut Children<'_, 'd>,
        (namespace, local): (&'static str, &'static str),
        read: impl FnMut(&mut Check, Node<'d>) -> Option<T>,
    ) -> Option<T> {
        children.required(namespace, local, read)
    }

    fn values(&self) -> &[T] {
        std::slice::from_ref(self)
    }
}

impl<T: Written> Field for Option<T> {
    type Of = T;

    fn take<'d>(
        children: &mut Children<'_, 'd>,
        (namespace, local): (&'static str, &'static str),
        read: impl FnMut(&mut Check, Node<'d>) -> Option<T>,
    ) -> Option<Option<T>> {
        Some(children.optional(namespace, local, read))
    }

    fn values(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Written> Field for Vec<T> {
    type Of = T;

    fn take<'d>(
        children: &mut Children<'_, 'd>,
        (namespace, local): (&'static str, &'static str),
        read: impl FnMut(&mut Check, Node<'d>) -> Option<T>,
    ) -> Option<Vec<T>> {
        Some(children.many(namespace, local, read))
    }

    fn values(&self) -> &[T] {
        self
    }
}

impl Xml {
    /// Writes the elements of a field under a name.
    pub(crate) fn add(&mut self, name: &'static str, field: &impl Field) {
        self.add_all(name, field.values());
    }

    /// Writes values each as an element of this name.
    pub(crate) fn add_all(&mut self, name: &'static str, values: &[impl Written]) {
        for value in values {
            value.put(self, name);
        }
    }
}

/// Defines a struct of public fields, each with the name of the elements that say it, in the order of the document. It is
/// [`Written`].
macro_rules! written {
    ($(#[$attr:meta])* pub struct $name:ident $(<$life:lifetime>)? {
        $($(#[$doc:meta])* pub $field:ident: $type:ty = $element:literal,)*
    }) => {
        $(#[$attr])*
        pub struct $name $(<$life>)? {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $(<$life>)? $crate::xml::Written for $name $(<$life>)? {
            fn write(&self, xml: &mut $crate::xml::Xml) {
                $(xml.add($element, &self.$field);)*
            }
        }
    };
}

/// As [`written!`], and the struct is [`Readable`], too. `by` names the function that reads a field's text, and behind the
/// struct's name the function that takes its children, where these are other than usual. `*` stands for all elements of other
/// namespaces.
macro_rules! element {
    ($(#[$attr:meta])* pub struct $name:ident $(by $children:ident)? {
        $($(#[$doc:meta])* pub $field:ident: $type:ty = $element:literal $(by $parse:ident)?,)*
    }) => {
        $crate::xml::written! {
            $(#[$attr])*
            pub struct $name {
                $($(#[$doc])* pub $field: $type = $element,)*
            }
        }

        impl $crate::xml::Readable for $name {
            fn read(
                check: &mut $crate::xml::Check,
                node: $crate::xml::Node<'_>,
            ) -> Option<Self> {
                use $crate::xml::{Field, element};
                element!(@children $($children)?)(check, node, |children| {
                    $(
                        let name = const { $crate::xml::ns::split($element) };
                        let $field = <$type as Field>::take(children, name, element!(@reader $($parse)?));
                    )*
                    Some(Self { $($field: $field?,)* })
                })
            }
        }
    };
    (@children) => { $crate::xml::Check::children };
    (@children $children:ident) => { $children };
    (@reader) => { $crate::xml::Readable::read };
    (@reader $parse:ident) => { $crate::xml::simple($parse) };
}

pub(crate) use {element, written};

/// Values that are written as they are shown.
macro_rules! shown {
    ($($type:ty),*) => {$(
        impl Written for $type {
            fn write(&self, xml: &mut Xml) {
                xml.value(self);
            }
        }
    )*};
}

shown!(String, &str, bool, i32, i64, u32, u64, DateTime, Duration);

impl Written for f64 {
    fn write(&self, xml: &mut Xml) {
        xml.value(write_double(*self));
    }
}

impl<T: Named> Written for T {
    fn write(&self, xml: &mut Xml) {
        xml.value(self.name());
    }
}

/// A fragment is a whole element, under the name that it has.
impl Written for Fragment {
    fn write(&self, xml: &mut Xml) {
        xml.insert(self);
    }

    fn put(&self, xml: &mut Xml, _: &'static str) {
        self.write(xml);
    }
}

impl Readable for String {
    fn read(check: &mut Check, node: Node<'_>) -> Option<String> {
        check.string(node)
    }
}

impl Readable for DateTime {
    fn read(check: &mut Check, node: Node<'_>) -> Option<DateTime> {
        simple(str::parse)(check, node)
    }
}

impl<T: Named> Readable for T {
    fn read(check: &mut Check, node: Node<'_>) -> Option<T> {
        simple(named)(check, node)
    }
}

impl Readable for Fragment {
    fn read(_: &mut Check, node: Node<'_>) -> Option<Fragment> {
        Some(node.fragment())
    }
}
