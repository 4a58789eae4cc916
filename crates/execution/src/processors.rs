//! The processors of this machine, as the nodes of its own resources share them: each node has the same number of them, and no other node has
//! these. A job may run on the processors of its nodes only, so it takes none of the time of others.

use domain::resources::Resource;
use rustix::thread::{CpuSet, sched_getaffinity};
use scheduler::counted;

/// The numbers of the processors that this process may use, rising; none where the system does not tell.
pub(super) fn own_processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU)
        .filter(|number| set.is_set(*number))
        .collect()
}

/// Of `own` processors those of some nodes of a resource, by the numbers of the nodes there. The resources of this machine divide its
/// processors in their order. None where there are fewer processors than nodes, or a node is none of the resource any more.
pub(super) fn processors_of_nodes<'r>(
    own: &[usize],
    resources: impl Iterator<Item = &'r Resource>,
    resource: &str,
    nodes: &[u32],
) -> Option<Vec<usize>> {
    let (mut all, mut first) = (0_usize, None);
    for one_resource in resources {
        let capacity = usize::try_from(one_resource.capacity).ok()?;
        if one_resource.name == resource {
            first = Some((all, capacity));
        }
        all += capacity;
    }
    let (first, capacity) = first?;
    let share = own.len().checked_div(all).filter(|share| *share > 0)?;
    let mut processors = Vec::with_capacity(nodes.len() * share);
    for node in nodes {
        let node = usize::try_from(*node).ok().filter(|node| *node < capacity)?;
        let from = (first + node) * share;
        processors.extend(own.get(from..from + share)?);
    }
    (!processors.is_empty()).then_some(processors)
}

/// Why the nodes of these resources have no processors of their own, where they have not: in words for the operator.
pub(super) fn why_processors_are_shared<'r>(
    own: &[usize],
    resources: impl Iterator<Item = &'r Resource>,
) -> Option<String> {
    let nodes: u64 = resources.map(|resource| u64::from(resource.capacity)).sum();
    let count = u64::try_from(own.len()).unwrap_or(u64::MAX);
    (nodes > count).then(|| {
        let (nodes, processors) = (counted(nodes, "node"), counted(count, "processor"));
        format!("the resources of kind local have {nodes}, and this machine has {processors}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_divide_the_processors_of_the_machine_and_share_none() {
        let resources = [Resource::new("one", "local", 2), Resource::new("two", "local", 1)];
        let chosen = |own: &[usize], resource: &str, nodes: &[u32]| {
            processors_of_nodes(own, resources.iter(), resource, nodes)
        };
        let seven = [0, 1, 2, 3, 8, 9, 10];
        assert_eq!(chosen(&seven, "one", &[0]), Some(vec![0, 1]));
        assert_eq!(chosen(&seven, "one", &[1, 0]), Some(vec![2, 3, 0, 1]));
        assert_eq!(chosen(&seven, "two", &[0]), Some(vec![8, 9]));
        assert_eq!(chosen(&seven[..3], "two", &[0]), Some(vec![2]));
        assert_eq!(chosen(&seven[..2], "two", &[0]), None, "fewer than nodes");
        assert_eq!(chosen(&seven, "two", &[1]), None, "a node that was taken away");
        assert_eq!(
            (chosen(&seven, "two", &[]), chosen(&seven, "three", &[0])),
            (None, None)
        );
        assert_eq!(why_processors_are_shared(&seven[..3], resources.iter()), None);
        let why = why_processors_are_shared(&seven[..2], resources.iter());
        let expected = "the resources of kind local have 3 nodes, and this machine has 2 processors";
        assert_eq!(why.as_deref(), Some(expected));
    }
}
