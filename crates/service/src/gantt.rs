//! The plan of a resource on its nodes: for operators.

use std::ops::Range;

use domain::resources::{Resource, WhyUnused};
use planner::{Picture, PicturedResource, TakePicture};
use scheduler::{Interval, Time};

use crate::chart_rows::chart_rows_of_slots;
use crate::views::chart_slot::ChartSlotView;
use crate::{Result, Service};

/// The plan of a resource on its nodes. For operators.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn show_gantt(service: &Service, query: GanttQuery) -> Result<GanttView> {
    let picture = service
        .ask(TakePicture {
            resource: query.resource.clone(),
            period: query.period(),
            slots_max: SLOTS_MAX,
        })
        .await?;
    let resources = service.planner.resources();
    service
        .run_document_work(move |_| GanttView::of(picture, &resources, &query))
        .await
}

/// Nodes of which the names are told: more cannot be told apart on a picture.
const NAMES_MAX: u32 = 64;

/// The most slots that are shown one by one: more would not be told apart, either.
const SLOTS_MAX: usize = 1_000;

/// A question for the plan of a resource.
#[derive(Debug, Clone)]
pub struct GanttQuery {
    /// Which resource; the first where none is named.
    pub resource: Option<String>,
    /// From when until when, in seconds since the epoch.
    pub period: (i64, i64),
    /// The number of the first node, and how many.
    pub nodes: (u32, u32),
}

/// The plan of a resource for a time, on some of its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GanttView {
    /// The second of the plan.
    pub taken: i64,
    /// The resources to choose from.
    pub names: Vec<String>,
    /// The resource; none where there is no such resource.
    pub shown: Option<GanttResourceView>,
}

/// A resource with its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GanttResourceView {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub capacity: u32,
    /// The number of the first node that is shown, and of the one behind the last.
    pub nodes: (u32, u32),
    /// The names of these, where they are few.
    pub node_names: Vec<String>,
    /// The slots on them in the time that is shown, by start: the first ones where they are too many.
    pub slots: Vec<ChartSlotView>,
    /// How many more there are on all nodes.
    pub more: usize,
    /// The time from the last of these slots on, where there are more: the start and the end of each of its parts, and how many nodes of
    /// the resource are planned for something in it.
    pub rest: Vec<(i64, i64, u32)>,
    /// The nodes that are not used.
    pub unused: Vec<GanttUnusedView>,
}

/// Nodes that are not used for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GanttUnusedView {
    /// Which of the nodes that are shown.
    pub rows: Range<u32>,
    /// From when.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// `maintenance`, `others`, or the state of the nodes.
    pub why: &'static str,
}

impl GanttQuery {
    fn period(&self) -> Interval {
        Interval::new(Time(self.period.0), Time(self.period.1))
    }
}

impl GanttView {
    /// What a picture of the plan shows for a query. O(n log n) for n slots on it.
    pub(super) fn of(picture: Picture, resources: &[Resource], query: &GanttQuery) -> Self {
        Self {
            taken: picture.taken.seconds(),
            names: picture.names,
            shown: picture
                .shown
                .map(|shown| gantt_resource_of_picture(&shown, resources, query)),
        }
    }
}

fn gantt_resource_of_picture(
    resource: &PicturedResource,
    resources: &[Resource],
    query: &GanttQuery,
) -> GanttResourceView {
    let (first, many) = query.nodes;
    let first = first.min(resource.capacity.saturating_sub(1));
    let nodes = first..first.saturating_add(many.max(1)).min(resource.capacity);
    let period = query.period();
    let lanes = chart_rows_of_slots(resource.capacity, &resource.slots, &resource.unused);
    let slots = resource.slots.iter().zip(lanes).filter_map(|(slot, rows)| {
        let rows: Vec<_> = rows
            .iter()
            .filter_map(|rows| common_gantt_rows(rows, &nodes))
            .collect();
        (!rows.is_empty()).then(|| ChartSlotView::of(slot, rows))
    });
    let unused = resource
        .unused
        .iter()
        .filter(|unused| unused.interval.meets(period))
        .filter_map(|unused| {
            Some(GanttUnusedView {
                rows: common_gantt_rows(&unused.nodes, &nodes)?,
                start: unused.interval.start.seconds(),
                end: unused.interval.end.seconds(),
                why: match unused.why {
                    WhyUnused::Maintenance => "maintenance",
                    WhyUnused::State(state) => state.word(),
                    WhyUnused::Others => "others",
                },
            })
        });
    let named = resources.iter().find(|named| named.name == resource.name);
    let name_of = |node: u32| {
        let name = named.and_then(|named| named.node_names.get(node as usize));
        name.map_or_else(|| node.to_string(), Clone::clone)
    };
    let are_few = nodes.end - nodes.start <= NAMES_MAX;
    let rest = resource.rest.iter();
    GanttResourceView {
        name: resource.name.clone(),
        capacity: resource.capacity,
        nodes: (nodes.start, nodes.end),
        node_names: if are_few {
            nodes.clone().map(name_of).collect()
        } else {
            Vec::new()
        },
        slots: slots.collect(),
        more: resource.more,
        rest: rest
            .map(|(part, nodes)| (part.start.seconds(), part.end.seconds(), *nodes))
            .collect(),
        unused: unused.collect(),
    }
}

fn common_gantt_rows(one: &Range<u32>, other: &Range<u32>) -> Option<Range<u32>> {
    let common = one.start.max(other.start)..one.end.min(other.end);
    (!common.is_empty()).then_some(common)
}

#[cfg(test)]
mod tests {
    use domain::resources::UnusedNodes;
    use planner::{PicturedSlot, PicturedSlotOf};
    use uuid::Uuid;

    use super::*;

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "most slots have one range of rows"
    )]
    fn only_what_lies_on_the_nodes_and_in_the_time_is_shown() {
        let slot = |id: u128, start: i64, nodes: u32| PicturedSlot {
            of: PicturedSlotOf::HeldOffers(Uuid::from_u128(id)),
            party: "ann".to_owned(),
            interval: Interval::of(Time(start), 10),
            nodes,
            numbers: Vec::new(),
        };
        let down = UnusedNodes {
            nodes: 3..5,
            interval: Interval::new(Time(0), Time(100)),
            why: WhyUnused::State(domain::resources::NodeState::Down),
        };
        let picture = |period: (i64, i64)| {
            let all = [slot(1, 0, 2), slot(2, 0, 2), slot(3, 20, 1), slot(4, 50, 1)];
            let period = Interval::new(Time(period.0), Time(period.1));
            let meets = |slot: &PicturedSlot| slot.interval.meets(period);
            Picture {
                taken: Time(0),
                names: vec!["local".to_owned()],
                shown: Some(PicturedResource {
                    name: "local".to_owned(),
                    capacity: 6,
                    slots: all.into_iter().filter(meets).collect(),
                    more: 0,
                    rest: Vec::new(),
                    unused: vec![down.clone()],
                }),
            }
        };
        let mut query = GanttQuery {
            resource: None,
            period: (5, 30),
            nodes: (1, 3),
        };
        let mut named = Resource::new("local", "local", 6);
        named.node_names = vec!["a".to_owned(), "b".to_owned()];
        let view = GanttView::of(picture(query.period), &[named], &query);
        let shown = view.shown.unwrap();
        let rows: Vec<_> = shown
            .slots
            .iter()
            .map(|slot| (slot.id.as_u128(), slot.rows.clone()))
            .collect();
        assert_eq!(
            rows,
            [(1, vec![1..2]), (2, vec![2..3])],
            "the third lies on node 0"
        );
        assert_eq!(
            (shown.nodes, shown.node_names),
            ((1, 4), ["b", "2", "3"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            (shown.unused[0].rows.clone(), shown.unused[0].why),
            (3..4, "down")
        );
        query = GanttQuery {
            resource: None,
            period: (0, 0),
            nodes: (u32::MAX, 0),
        };
        let one_shown = GanttView::of(picture(query.period), &[], &query).shown.unwrap();
        assert_eq!((one_shown.nodes, one_shown.slots.len()), ((5, 6), 0));
    }
}
