//! The sizes of a request that a resource may take.

use domain::agreement::{BarredResource, Filter, Shape};
use domain::resources::Resource;

/// Whether a resource may take a size, by the conditions on its nodes and by its cluster.
pub(crate) fn may_take_needed_shape(
    on: &Resource,
    shape: Shape,
    filters: &[Filter],
    barred: &[BarredResource],
) -> bool {
    let mut required = filters.iter().map(|filter| filter.requirement(shape.nodes));
    !barred.iter().any(|resource| resource.keeps(shape, &on.name))
        && required.all(|required| on.meets(&required))
}

/// The sizes of some that a resource has the nodes for and may take, in their order.
pub(crate) fn able_needed_sizes<'a>(
    on: &'a Resource,
    sizes: &'a [Shape],
    filters: &'a [Filter],
    barred: &'a [BarredResource],
) -> impl Iterator<Item = Shape> + 'a {
    // The conditions on each node are the same for all sizes, of which there may be a thousand.
    let mut of_nodes = filters.iter().filter(|filter| !filter.is_total());
    let is_met = of_nodes.all(|filter| on.meets(&filter.requirement(1)));
    let sizes = if is_met { sizes } else { &[] };
    let has_total = filters.iter().any(Filter::is_total);
    let filters = if has_total { filters } else { &[] };
    let fits =
        |size: &&Shape| size.nodes <= on.capacity && may_take_needed_shape(on, **size, filters, barred);
    sizes.iter().filter(fits).copied()
}
