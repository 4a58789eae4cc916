//! The resources as predictions know them.

use domain::clock::Micros;
use domain::resources::{CorruptRow, LOCAL, Resource, ResourceRow, resources_as_configured};
use prediction::{Machine, Machines};

/// Stored resources as predictions know them, by name.
///
/// # Errors
/// Those of [`Resource::of_row`].
pub fn machines_of_rows(rows: Vec<ResourceRow>) -> Result<Machines, CorruptRow> {
    let machine = |row: ResourceRow| {
        let resource = Resource::of_row(row)?;
        let machine = Machine {
            is_retired: resource.is_retired(),
            rate: resource.rate,
            nodes: resource.capacity,
            attributes: resource.attributes,
            counts_own_work: resource.kind == LOCAL,
            copies_files: resource.kind != LOCAL,
        };
        Ok((resource.name, machine))
    };
    rows.into_iter().map(machine).collect()
}

/// Stored resources as predictions know them after these of a configuration are taken over, as of `now`.
///
/// # Errors
/// Those of [`Resource::of_row`].
pub fn machines_as_configured(
    rows: Vec<ResourceRow>,
    file: &[Resource],
    now: Micros,
) -> Result<Machines, CorruptRow> {
    let all: Result<Vec<_>, _> = rows.iter().cloned().map(Resource::of_row).collect();
    let next = resources_as_configured(&all?, file.to_vec(), now);
    // The later rows count.
    machines_of_rows(rows.into_iter().chain(next.iter().map(Resource::row)).collect())
}

#[cfg(test)]
mod tests {
    use scheduler::Rate;

    use super::*;

    #[test]
    fn machines_are_known_as_they_will_be_when_the_file_is_taken_over() {
        let rate = Rate::from_millionths(2_000_000).unwrap();
        let file = Resource {
            rate,
            ..Resource::new("r", "local", 2)
        };
        let old = Resource::new("old", "local", 4).as_configured(&Resource::new("old", "local", 4));
        let own = Resource::new("own", "local", 1);
        let rows = [&old, &own].map(Resource::row).to_vec();
        let machines = machines_as_configured(rows, &[file], 7).unwrap();
        let known = machines
            .iter()
            .map(|(name, machine)| (name.as_str(), machine.is_retired, machine.rate));
        let known: Vec<_> = known.collect();
        let plain = Rate::REFERENCE;
        assert_eq!(
            known,
            [("old", true, plain), ("own", false, plain), ("r", false, rate)]
        );
    }
}
