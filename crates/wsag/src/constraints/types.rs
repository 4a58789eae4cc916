//! Simple types of XML Schema as constraints use them: built-in types and restrictions by facets.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::constraints::pattern::Pattern;
use crate::constraints::published::{self, PublishedType};
use crate::constraints::view::View;
use crate::xml::datatypes::{Decimal, is_base64, parse_double, preserve_space, replace_space};
use crate::xml::ns::XS;
use crate::xml::{
    DateTime, Duration, Node, collapse_space, is_name_char, is_name_start, is_ncname,
    list_names_in_violation, shorten_text_in_violation,
};

mod contradictions;

/// A simple type.
pub(crate) enum Type {
    /// The type of a value is not given: bounds decide by their own form.
    Untyped,
    /// A type of XML Schema itself.
    Builtin(&'static Builtin),
    /// A type with facets.
    Restriction(Box<Type>, Facets),
    /// Values of a type, separated by white space.
    List(Box<Type>),
    /// A value of any of these types.
    Union(Vec<Type>),
}

/// How values of a type are written and compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Text,
    Boolean,
    Decimal,
    Double,
    DateTime,
    /// A part of an instant, with what stands before and after it in the dateTime of its first instant.
    Part(&'static str, &'static str),
    Duration,
}

/// A built-in type.
pub(crate) struct Builtin {
    name: &'static str,
    order: Order,
    /// Least and greatest value of the integer types; a type with either has no fraction.
    integer: Option<(&'static str, &'static str)>,
}

const fn builtin_type(name: &'static str, order: Order) -> Builtin {
    let integer = None;
    Builtin { name, order, integer }
}

const fn integer_type(name: &'static str, least: &'static str, greatest: &'static str) -> Builtin {
    let integer = Some((least, greatest));
    Builtin {
        integer,
        ..builtin_type(name, Order::Decimal)
    }
}

/// The types of XML Schema that are lists, with the types of their items.
const LISTS: [(&str, &str); 3] = [
    ("NMTOKENS", "NMTOKEN"),
    ("IDREFS", "IDREF"),
    ("ENTITIES", "ENTITY"),
];

/// The built-in types of XML Schema that are no lists. Dates and the like are compared as their first instants.
static BUILTINS: [Builtin; 41] = [
    builtin_type("string", Order::Text),
    builtin_type("normalizedString", Order::Text),
    builtin_type("token", Order::Text),
    builtin_type("anyURI", Order::Text),
    builtin_type("anySimpleType", Order::Text),
    builtin_type("NMTOKEN", Order::Text),
    builtin_type("NCName", Order::Text),
    builtin_type("ID", Order::Text),
    builtin_type("IDREF", Order::Text),
    builtin_type("ENTITY", Order::Text),
    builtin_type("Name", Order::Text),
    builtin_type("QName", Order::Text),
    builtin_type("hexBinary", Order::Text),
    builtin_type("base64Binary", Order::Text),
    builtin_type("language", Order::Text),
    builtin_type("boolean", Order::Boolean),
    builtin_type("decimal", Order::Decimal),
    builtin_type("double", Order::Double),
    builtin_type("float", Order::Double),
    builtin_type("dateTime", Order::DateTime),
    builtin_type("date", Order::Part("", "T00:00:00")),
    builtin_type("time", Order::Part("2000-01-01T", "")),
    builtin_type("gYear", Order::Part("", "-01-01T00:00:00")),
    builtin_type("gYearMonth", Order::Part("", "-01T00:00:00")),
    builtin_type("gMonth", Order::Part("2000", "-01T00:00:00")),
    builtin_type("gMonthDay", Order::Part("2000", "T00:00:00")),
    builtin_type("gDay", Order::Part("2000-01", "T00:00:00")),
    builtin_type("duration", Order::Duration),
    integer_type("integer", "", ""),
    integer_type("long", "-9223372036854775808", "9223372036854775807"),
    integer_type("int", "-2147483648", "2147483647"),
    integer_type("short", "-32768", "32767"),
    integer_type("byte", "-128", "127"),
    integer_type("nonNegativeInteger", "0", ""),
    integer_type("nonPositiveInteger", "", "0"),
    integer_type("negativeInteger", "", "-1"),
    integer_type("positiveInteger", "1", ""),
    integer_type("unsignedLong", "0", "18446744073709551615"),
    integer_type("unsignedInt", "0", "4294967295"),
    integer_type("unsignedShort", "0", "65535"),
    integer_type("unsignedByte", "0", "255"),
];

/// The facets of one restriction step.
#[derive(Default)]
pub(crate) struct Facets {
    bounds: Vec<(Bound, String, Order)>,
    enumeration: Vec<String>,
    patterns: Vec<Pattern>,
    /// One for each of [`SIZES`].
    sizes: [Option<usize>; SIZES.len()],
    /// How white space is normalised; none where that is as the base has it.
    white_space: Option<WhiteSpace>,
}

/// A way to normalise white space: to preserve, to replace or to collapse it.
type WhiteSpace = fn(&str) -> Cow<'_, str>;

/// The facets that have a number.
const SIZES: [&str; 5] = [
    "length",
    "minLength",
    "maxLength",
    "totalDigits",
    "fractionDigits",
];

/// The place of `minLength` there.
const LEAST: usize = 1;

/// A facet that bounds values: its name, the order to the bound that it allows, and its words.
type Bound = (&'static str, fn(Ordering) -> bool, &'static str);

const BOUNDS: [Bound; 4] = [
    ("minInclusive", Ordering::is_ge, "at least"),
    ("minExclusive", Ordering::is_gt, "more than"),
    ("maxInclusive", Ordering::is_le, "at most"),
    ("maxExclusive", Ordering::is_lt, "less than"),
];

impl Type {
    /// A simple type by its qualified name at an element: built-in, or of the published schemas.
    ///
    /// # Errors
    /// That it is not known, or has children.
    pub(crate) fn named(name: &str, scope: Node<'_>) -> Result<Type, String> {
        let unknown = || {
            let shown = shorten_text_in_violation(name);
            format!(
                "the type {shown} is not supported; supported are those of XML Schema, and of the protocol's schemas those of what \
                 offers can have"
            )
        };
        let (namespace, local) = published::resolve_published_name(name, scope).ok_or_else(unknown)?;
        if namespace == XS {
            return Type::built_in(local).ok_or_else(unknown);
        }
        match published::find_published_type(namespace, local).ok_or_else(unknown)? {
            PublishedType::Text => Type::built_in("string").ok_or_else(unknown),
            PublishedType::Names(names) => {
                let enumeration = names().into_iter().map(str::to_owned).collect();
                let base = Type::built_in("string").ok_or_else(unknown)?;
                let facets = Facets {
                    enumeration,
                    ..Facets::default()
                };
                Ok(Type::Restriction(Box::new(base), facets))
            }
            PublishedType::Content(_) => Err(format!(
                "the type {} is no simple type: only xs:element may name it",
                shorten_text_in_violation(name)
            )),
        }
    }

    /// A type of XML Schema itself.
    fn built_in(local: &str) -> Option<Type> {
        if let Some((_, item)) = LISTS.iter().find(|(name, _)| *name == local) {
            let list = Type::List(Box::new(Type::built_in(item)?));
            // Of these lists none is empty.
            let mut facets = Facets::default();
            facets.sizes[LEAST] = Some(1);
            return Some(Type::Restriction(Box::new(list), facets));
        }
        let builtin = BUILTINS.iter().find(|builtin| builtin.name == local);
        builtin.map(Type::Builtin)
    }

    /// The type of `xs:simpleType`.
    pub(crate) fn read(node: Node<'_>) -> Result<Type, String> {
        let kind = single_child_of_type(node)?;
        match (kind.namespace(), kind.local()) {
            (XS, "restriction") => {
                let mut children = kind.children().filter(|child| !is_annotation(*child)).peekable();
                let base = match kind.attribute("", "base") {
                    Some(base) => Type::named(base, kind)?,
                    None => match children.next() {
                        Some(child) if child.is(XS, "simpleType") => Type::read(child)?,
                        _ => return Err("a restriction needs a base type".to_owned()),
                    },
                };
                Type::restricted(base, children)
            }
            (XS, "list") => Ok(Type::List(Box::new(match kind.attribute("", "itemType") {
                Some(name) => Type::named(name, kind)?,
                None => Type::read(single_child_of_type(kind)?)?,
            }))),
            (XS, "union") => {
                let named = kind.attribute("", "memberTypes").unwrap_or_default();
                let named = named.split_ascii_whitespace().map(|name| Type::named(name, kind));
                let inner = kind.children().filter(|child| child.is(XS, "simpleType"));
                let members: Vec<Type> = named.chain(inner.map(Type::read)).collect::<Result<_, _>>()?;
                if members.is_empty() {
                    return Err("a union needs a member".to_owned());
                }
                Ok(Type::Union(members))
            }
            _ => Err(format!("{} is not known in a simple type", kind.name())),
        }
    }

    /// A type with facets, or the type itself where there are none.
    pub(crate) fn restricted<'d>(base: Type, nodes: impl Iterator<Item = Node<'d>>) -> Result<Type, String> {
        let mut nodes = nodes.peekable();
        if nodes.peek().is_none() {
            return Ok(base);
        }
        let mut facets = Facets::default();
        for node in nodes {
            facets.add(&base, node)?;
        }
        Ok(Type::Restriction(Box::new(base), facets))
    }

    /// How values are compared; None where the type does not say.
    fn order(&self) -> Option<Order> {
        match self {
            Type::Untyped | Type::Union(_) => None,
            Type::Builtin(builtin) => Some(builtin.order),
            Type::Restriction(base, _) => base.order(),
            Type::List(_) => Some(Order::Text),
        }
    }

    /// How long a value is, and in what.
    fn length(&self, value: &str) -> (usize, &'static str) {
        let digits = || value.bytes().filter(|b| !matches!(b, b' ' | b'=')).count();
        match self {
            Type::Restriction(base, _) => base.length(value),
            Type::List(_) => (value.split_ascii_whitespace().count(), "items"),
            Type::Builtin(builtin) if builtin.name == "hexBinary" => (digits() / 2, "octets"),
            // Each letter has six bits, and those that fill no octet count for nothing.
            Type::Builtin(builtin) if builtin.name == "base64Binary" => (digits() * 6 / 8, "octets"),
            _ => (value.chars().count(), "characters"),
        }
    }

    /// How white space of a value is normalised before it is compared.
    fn white_space(&self) -> WhiteSpace {
        match self {
            Type::Builtin(builtin) => builtin.white_space(),
            Type::Restriction(base, facets) => facets.white_space_over(base),
            _ => collapse_space,
        }
    }

    /// The most that a check of this value may cost, in units of [`View::charge`], without patterns, which count for themselves.
    fn cost(&self, value: &str) -> usize {
        match self {
            Type::Untyped | Type::Builtin(_) => 1 + value.len() / 16,
            Type::Restriction(base, facets) => {
                base.cost(value)
                    + (1 + facets.enumeration.len() + facets.bounds.len()) * (1 + value.len() / 64)
            }
            Type::List(item) => {
                (1 + value.split_ascii_whitespace().count()) * item.cost("") + item.cost(value)
            }
            Type::Union(members) => members.iter().map(|member| member.cost(value)).sum(),
        }
    }

    /// Whether a value is of the type: if not, the expected form.
    ///
    /// # Errors
    /// Once it takes too long.
    pub(crate) fn check_charged(&self, value: &str, view: &View<'_>) -> Result<Result<(), String>, String> {
        view.charge(self.cost(value))?;
        let checked = self.check(value, view);
        // A pattern that took too long is no mistake in the value.
        view.charge(0)?;
        Ok(checked)
    }

    fn check(&self, value: &str, view: &View<'_>) -> Result<(), String> {
        match self {
            Type::Untyped => Ok(()),
            Type::Builtin(builtin) => builtin.check(value),
            Type::Restriction(base, facets) => {
                let normal = facets.white_space_over(base)(value);
                base.check(&normal, view)?;
                facets.check(base, &normal, view)
            }
            Type::List(item) => value
                .split_ascii_whitespace()
                .try_for_each(|value| item.check(value, view)),
            Type::Union(members) => {
                let mut failed = Vec::new();
                for member in members {
                    match member.check(value, view) {
                        Ok(()) => return Ok(()),
                        Err(message) => failed.push(message),
                    }
                }
                Err(failed.join("; or "))
            }
        }
    }
}

pub(super) fn is_annotation(node: Node<'_>) -> bool {
    node.is(XS, "annotation")
}

/// The one child that is no annotation.
pub(crate) fn single_child_of_type(node: Node<'_>) -> Result<Node<'_>, String> {
    let mut children = node.children().filter(|child| !is_annotation(*child));
    match (children.next(), children.next()) {
        (Some(child), None) => Ok(child),
        _ => Err(format!("{} needs exactly one element in it", node.name())),
    }
}

impl Builtin {
    /// How white space of a value is normalised, as XML Schema says for the type.
    fn white_space(&self) -> WhiteSpace {
        match self.name {
            "string" | "anySimpleType" => preserve_space,
            "normalizedString" => replace_space,
            _ => collapse_space,
        }
    }

    fn check(&self, value: &str) -> Result<(), String> {
        let value = self.white_space()(value);
        let valid = match self.order {
            Order::Text => match self.name {
                "NCName" | "ID" | "IDREF" | "ENTITY" => is_ncname(&value),
                "NMTOKEN" => !value.is_empty() && value.chars().all(|c| c == ':' || is_name_char(c)),
                "Name" => {
                    value.starts_with(|c| c == ':' || is_name_start(c))
                        && value.chars().all(|c| c == ':' || is_name_char(c))
                }
                "QName" => value.split_once(':').map_or_else(
                    || is_ncname(&value),
                    |(prefix, local)| is_ncname(prefix) && is_ncname(local),
                ),
                "hexBinary" => value.len().is_multiple_of(2) && value.bytes().all(|b| b.is_ascii_hexdigit()),
                "base64Binary" => is_base64(&value),
                _ => true,
            },
            Order::Boolean => matches!(value.as_ref(), "true" | "false" | "1" | "0"),
            Order::Decimal => self.check_decimal(&value),
            Order::Double => parse_double(&value).is_ok(),
            Order::DateTime => value.parse::<DateTime>().is_ok(),
            Order::Part(..) => compare_values_of_type(self.order, &value, &value).is_some(),
            Order::Duration => value.parse::<Duration>().is_ok(),
        };
        if valid {
            Ok(())
        } else {
            Err(format!("a value of xs:{} is expected", self.name))
        }
    }

    fn check_decimal(&self, value: &str) -> bool {
        let Some(decimal) = Decimal::parse(value) else {
            return false;
        };
        let Some((least, greatest)) = self.integer else {
            return true;
        };
        let above = Decimal::parse(least).is_none_or(|least| decimal >= least);
        let below = Decimal::parse(greatest).is_none_or(|greatest| decimal <= greatest);
        !value.contains('.') && above && below
    }
}

/// Compares two values; None where one is not of the type, or they have no order.
fn compare_values_of_type(order: Order, one: &str, two: &str) -> Option<Ordering> {
    match order {
        Order::Text | Order::Boolean => (one == two).then_some(Ordering::Equal),
        Order::Decimal => match (Decimal::parse(one), Decimal::parse(two)) {
            (Some(one), Some(two)) => Some(one.cmp(&two)),
            // A value without a type may be a double, such as 1e0, where its bound is written as a decimal.
            _ => compare_values_of_type(Order::Double, one, two),
        },
        Order::Double => parse_double(one).ok()?.partial_cmp(&parse_double(two).ok()?),
        Order::DateTime => Some(one.parse::<DateTime>().ok()?.cmp(&two.parse::<DateTime>().ok()?)),
        Order::Part(before, after) => {
            let first = |value| first_instant_of_type(before, value, after);
            Some(first(one)?.cmp(&first(two)?))
        }
        Order::Duration => one
            .parse::<Duration>()
            .ok()?
            .partial_cmp(&two.parse::<Duration>().ok()?),
    }
}

/// The first instant of a date, a month or the like, with its zone. None where it is none.
fn first_instant_of_type(before: &str, value: &str, after: &str) -> Option<DateTime> {
    let zone = match value.as_bytes() {
        [.., b'Z'] => 1,
        [.., b'+' | b'-', _, _, b':', _, _] => 6,
        _ => 0,
    };
    let (value, zone) = value.split_at_checked(value.len() - zone)?;
    // A month or a day begins with dashes, of which the first stand for what is left out.
    let value = match before.len() {
        4 => value.strip_prefix('-').filter(|rest| rest.starts_with('-'))?,
        7 => value.strip_prefix("--").filter(|rest| rest.starts_with('-'))?,
        _ => value,
    };
    format!("{before}{value}{after}{zone}").parse().ok()
}

/// The order that the form of a value shows, for values without a type.
fn order_of_type_by_value(value: &str) -> Order {
    let mut orders = [Order::Decimal, Order::DateTime, Order::Duration].into_iter();
    let found = orders.find(|order| compare_values_of_type(*order, value, value).is_some());
    found.unwrap_or(Order::Text)
}

impl Facets {
    fn add(&mut self, base: &Type, node: Node<'_>) -> Result<(), String> {
        let name = node.local();
        if node.namespace() != XS {
            return Err(format!("{} is no facet of XML Schema", node.name()));
        }
        let value = node
            .attribute("", "value")
            .ok_or_else(|| format!("xs:{name} needs the attribute value"))?;
        if let Some(index) = SIZES.iter().position(|known| *known == name) {
            let number = value.trim().parse();
            self.sizes[index] = Some(number.map_err(|_| format!("xs:{name} needs a whole number"))?);
        } else if let Some(bound) = BOUNDS.iter().find(|(known, ..)| *known == name) {
            self.bound(*bound, base, value)?;
        } else {
            match (name, value) {
                ("enumeration", _) => self.enumeration.push(value.to_owned()),
                ("pattern", _) => self.patterns.push(Pattern::compile(value)?),
                ("whiteSpace", "preserve") => self.white_space = Some(preserve_space),
                ("whiteSpace", "replace") => self.white_space = Some(replace_space),
                ("whiteSpace", "collapse") => self.white_space = Some(collapse_space),
                ("whiteSpace", _) => {
                    return Err("xs:whiteSpace must be preserve, replace or collapse".to_owned());
                }
                _ => return Err(format!("xs:{name} is no facet that can be evaluated")),
            }
        }
        Ok(())
    }

    fn bound(&mut self, bound: Bound, base: &Type, value: &str) -> Result<(), String> {
        let value = collapse_space(value).into_owned();
        let order = base.order().unwrap_or_else(|| order_of_type_by_value(&value));
        if matches!(order, Order::Text | Order::Boolean)
            || compare_values_of_type(order, &value, &value).is_none()
        {
            return Err(format!("the bound {value:?} is no number, dateTime or duration"));
        }
        self.bounds.push((bound, value, order));
        Ok(())
    }

    /// How white space is normalised in a restriction of a type by these facets.
    fn white_space_over(&self, base: &Type) -> WhiteSpace {
        self.white_space.unwrap_or_else(|| base.white_space())
    }

    fn check(&self, base: &Type, value: &str, view: &View<'_>) -> Result<(), String> {
        for (bound, limit, order) in &self.bounds {
            check_bound_of_type(*bound, limit, *order, value)?;
        }
        let normalise = self.white_space_over(base);
        let equal = |listed: &String| {
            let listed = normalise(listed);
            let order = base.order().unwrap_or_else(|| order_of_type_by_value(&listed));
            listed == value || compare_values_of_type(order, &listed, value) == Some(Ordering::Equal)
        };
        if !self.enumeration.is_empty() && !self.enumeration.iter().any(equal) {
            let message = format!(
                "{} is expected, not {:?}",
                list_names_in_violation(self.enumeration.iter().map(String::as_str), " or "),
                shorten_text_in_violation(value)
            );
            return refuse_value_of_type(message, view);
        }
        let mut matches = self.patterns.is_empty();
        for pattern in &self.patterns {
            matches = matches || pattern.matches(value, view)?;
        }
        if !matches {
            let patterns: Vec<&str> = self.patterns.iter().map(Pattern::text).collect();
            let message = format!("a value of the pattern {} is expected", patterns.join(" or "));
            return refuse_value_of_type(message, view);
        }
        self.check_sizes(base, value)
    }

    fn check_sizes(&self, base: &Type, value: &str) -> Result<(), String> {
        let (length, unit) = base.length(value);
        let [wanted, least, most, digits, after_point] = self.sizes;
        if let Some(wanted) = wanted.filter(|wanted| length != *wanted) {
            return Err(format!("{wanted} {unit} are expected, not {length}"));
        }
        if let Some(least) = least.filter(|least| length < *least) {
            return Err(format!("at least {least} {unit} are expected"));
        }
        if let Some(most) = most.filter(|most| length > *most) {
            return Err(format!("at most {most} {unit} are expected"));
        }
        if digits.or(after_point).is_none() {
            return Ok(());
        }
        let decimal = Decimal::parse(value).ok_or("a decimal number is expected")?;
        if let Some(most) = digits.filter(|most| decimal.total_digits() > *most) {
            return Err(format!("at most {most} digits are expected"));
        }
        if let Some(most) = after_point.filter(|most| decimal.fraction_digits() > *most) {
            return Err(format!("at most {most} digits after the point are expected"));
        }
        Ok(())
    }
}

/// A message about the expected value. It costs work by its length, because a constraint decides the length: also in a
/// union where another member is met.
fn refuse_value_of_type(message: String, view: &View<'_>) -> Result<(), String> {
    view.charge(message.len() / 64)?;
    Err(message)
}

fn check_bound_of_type(
    (_, allows, words): Bound,
    limit: &str,
    order: Order,
    value: &str,
) -> Result<(), String> {
    let kind = match order {
        Order::DateTime => "a dateTime",
        Order::Part(..) => "a date or a part of one",
        Order::Duration => "a duration",
        _ => "a number",
    };
    let Some(found) = compare_values_of_type(order, value, limit) else {
        return Err(format!(
            "{kind} that can be compared with {limit} is expected, not {:?}",
            shorten_text_in_violation(value)
        ));
    };
    if allows(found) {
        Ok(())
    } else {
        Err(format!(
            "{words} {limit} is expected, not {}",
            shorten_text_in_violation(value)
        ))
    }
}
