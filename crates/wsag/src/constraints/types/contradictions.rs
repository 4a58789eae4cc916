//! Facets that contradict each other, so that no value has the type. XML Schema calls that an error of the schema (part 2, 4.3).

use super::{BOUNDS, Bound, Builtin, Facets, Order, Type, check_bound_of_type, compare_values_of_type};
use crate::xml::list_names_in_violation;

impl Type {
    /// Why no value can be of the type: its facets contradict each other, or those of its base. None where no contradiction is
    /// found; patterns are not looked at.
    pub(in crate::constraints) fn contradiction(&self) -> Option<String> {
        match self {
            Type::Restriction(base, facets) => base
                .contradiction()
                .or_else(|| facets.contradiction(base, &self.bounds())),
            Type::Union(members) => {
                let each: Option<Vec<String>> = members.iter().map(Type::contradiction).collect();
                each.map(|each| each.join("; and "))
            }
            Type::Untyped | Type::Builtin(_) | Type::List(_) => None,
        }
    }

    /// All bounds on a value, those of its bases first.
    fn bounds(&self) -> Vec<(Bound, &str, Order)> {
        let (base, own) = match self {
            Type::Restriction(base, facets) => (base.bounds(), &facets.bounds[..]),
            Type::Builtin(Builtin { order, integer, .. }) => {
                let (least, most) = integer.unwrap_or_default();
                let bounds = [(BOUNDS[0], least, *order), (BOUNDS[2], most, *order)];
                return bounds
                    .into_iter()
                    .filter(|(_, limit, _)| !limit.is_empty())
                    .collect();
            }
            Type::Untyped | Type::List(_) | Type::Union(_) => return Vec::new(),
        };
        let own = own
            .iter()
            .map(|(bound, limit, order)| (*bound, limit.as_str(), *order));
        base.into_iter().chain(own).collect()
    }
}

impl Facets {
    /// Why no value of a type can have all these facets, where the restriction of it has these bounds. A lower bound is met by a higher
    /// limit, and an upper bound by a lower one, so that two bounds leave room where each is met by the other's limit.
    fn contradiction(&self, base: &Type, bounds: &[(Bound, &str, Order)]) -> Option<String> {
        let mut pairs = bounds
            .iter()
            .flat_map(|one| bounds.iter().map(move |two| (one, two)));
        let apart = pairs.find(|(one, two)| {
            let opposite = one.0.0.starts_with("min") && two.0.0.starts_with("max");
            let order = compare_values_of_type(one.2, two.1, one.1);
            opposite && order.is_some_and(|order| !one.0.1(order) || !two.0.1(order.reverse()))
        });
        if let Some((one, two)) = apart {
            return Some(format!(
                "no value is {} {} and {} {}",
                one.0.2, one.1, two.0.2, two.1
            ));
        }
        let [wanted, least, most, ..] = self.sizes;
        let (at_least, at_most) = (least.max(wanted), [most, wanted].into_iter().flatten().min());
        if let Some((least, most)) = at_least.zip(at_most).filter(|(least, most)| least > most) {
            let (_, unit) = base.length("");
            return Some(format!("no value has at least {least} and at most {most} {unit}"));
        }
        let is_out = |value: &String| {
            let value = self.white_space_over(base)(value);
            let mut bounds = bounds.iter();
            bounds.any(|(bound, limit, order)| check_bound_of_type(*bound, limit, *order, &value).is_err())
                || self.check_sizes(base, &value).is_err()
        };
        (!self.enumeration.is_empty() && self.enumeration.iter().all(is_out)).then(|| {
            let listed = list_names_in_violation(self.enumeration.iter().map(String::as_str), " or ");
            format!("its other facets allow none of {listed}")
        })
    }
}
