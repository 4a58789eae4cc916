//! The other places and sizes that an agreement may have: known at its acceptance, and needed again wherever it gets a new place.

use scheduler::moldable::WHOLE_PPM;
use scheduler::preemptive::Preemption;
use scheduler::{Rate, Seconds};
use serde::{Deserialize, Serialize};

use super::{Filter, ShapeChanges};

/// A size with the duration on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Nodes.
    pub nodes: u32,
    /// Seconds.
    pub duration: Seconds,
}

/// The other places and sizes that an agreement may have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacementConstraints {
    /// The sizes that it may have, from most nodes to fewest, with the durations at the reference rate: a resource divides them
    /// by its own. Empty where size and duration are contracted as they are, on every resource.
    pub shapes: Vec<Shape>,
    /// The probability, in millionths, with which its slot was sized to hold its work; none where its duration was not predicted. On
    /// another resource it is sized again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ppm: Option<u32>,
    /// Paper 004's estimate of its work on its resource, in seconds from the start of its slot, as it was made when it got its place
    /// there; none where nothing was known of its application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Seconds>,
    /// The part of its window in which its slot was foreseen to be long enough, in which it may move, as seconds since
    /// the epoch; none where that is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<(Seconds, Seconds)>,
    /// When it expires, as seconds since the epoch: no slot goes on after that, also one that is made longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Seconds>,
    /// Whether each of its pieces may have its own size, where its work is in pieces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pieces_differ: bool,
    /// How its work may be cut, where it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuts: Option<Cuts>,
    /// What may still change of its shape, where its request or its place says that; none for all that its request leaves open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape_changes: Option<ShapeChanges>,
    /// The conditions that its nodes must meet.
    pub filters: Vec<Filter>,
    /// The resources of clusters that refused its job when it was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub barred: Vec<BarredResource>,
    /// The millionths of its wait after which its slot moves no more.
    pub fix_at_ppm: Option<u32>,
    /// The start that was promised, as seconds since the epoch, where it begins later than that; none where the planned start is
    /// the promised one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised: Option<Seconds>,
    /// The node-seconds that its price was agreed for, where the provider has given it another shape since; none where it has as
    /// many as it was priced for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priced_node_seconds: Option<u64>,
}

impl PlacementConstraints {
    /// What may still change of its shape: all that its request leaves open, unless the request or its place says less. None where
    /// its request leaves one shape only.
    pub fn open_shape_changes(&self) -> Option<ShapeChanges> {
        let (sizes, cuts) = (self.shapes.len() > 1, self.cuts.is_some());
        let all = ShapeChanges {
            sizes,
            cuts,
            until: None,
        };
        let open = self.shape_changes.map_or(all, |said| ShapeChanges {
            sizes: said.sizes && sizes,
            cuts: said.cuts && cuts,
            until: said.until,
        });
        (sizes || cuts).then_some(open)
    }

    /// Has its shape stay as it is: others hold its nodes where it lies.
    pub fn keep_shape(&mut self) {
        if self.open_shape_changes().is_some() {
            self.shape_changes = Some(ShapeChanges::NONE);
        }
    }
}

/// How work may be cut in pieces that follow each other (`S_p` of paper 002, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cuts {
    /// Most pieces (N).
    pub pieces: u32,
    /// Cuts are at multiples of this part of the work, in millionths (I).
    pub interval_ppm: u32,
    /// Whether each piece may have its own size (M).
    pub independent: bool,
}

impl Cuts {
    /// The same as the scheduler has it, for work that may have so many sizes.
    pub fn preemption(self, sizes: usize) -> Option<Preemption> {
        let preemption = Preemption::new(self.pieces, self.interval_ppm, self.independent)?;
        Some(preemption.whole_for(sizes))
    }
}

impl From<&Preemption> for Cuts {
    fn from(preemption: &Preemption) -> Self {
        Self {
            pieces: preemption.pieces_max(),
            interval_ppm: preemption.interval_ppm().min(WHOLE_PPM),
            independent: preemption.independent(),
        }
    }
}

/// A resource that cannot have a job, because its cluster would refuse it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarredResource {
    /// The resource's name.
    pub resource: String,
    /// The sizes that it would refuse, as they are asked for; empty for every size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Shape>,
    /// The cluster's own words.
    pub why: String,
}

impl BarredResource {
    /// Whether it keeps a job of this size from a resource.
    pub fn keeps(&self, shape: Shape, resource: &str) -> bool {
        self.resource == resource && (self.sizes.is_empty() || self.sizes.contains(&shape))
    }
}

impl Shape {
    /// How long it takes on a resource of that rate, if the duration is meant at the reference rate.
    #[must_use]
    pub fn at(self, rate: Rate) -> Self {
        Self {
            duration: rate.duration(self.duration),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(count: u32) -> Vec<Shape> {
        let size = |nodes| Shape { nodes, duration: 60 };
        (1..=count).rev().map(size).collect()
    }

    #[test]
    fn what_the_request_leaves_open_may_change_unless_it_says_less() {
        let cuts = Some(Cuts {
            pieces: 2,
            interval_ppm: 500_000,
            independent: false,
        });
        let changes = |count, cuts, said| {
            let constraints = PlacementConstraints {
                shapes: sizes(count),
                cuts,
                shape_changes: said,
                ..PlacementConstraints::default()
            };
            let open = constraints.open_shape_changes();
            open.map(|open| (open.sizes, open.cuts))
        };
        let all = Some(ShapeChanges {
            sizes: true,
            cuts: true,
            until: None,
        });
        assert_eq!(changes(1, None, None), None);
        assert_eq!(changes(1, None, all), None);
        assert_eq!(changes(3, None, None), Some((true, false)));
        assert_eq!(changes(3, cuts, None), Some((true, true)));
        assert_eq!(changes(1, cuts, all), Some((false, true)));
        assert_eq!(changes(3, cuts, Some(ShapeChanges::NONE)), Some((false, false)));
    }

    #[test]
    fn a_shape_is_kept_where_there_is_another() {
        let mut constraints = PlacementConstraints::default();
        constraints.keep_shape();
        assert_eq!(constraints, PlacementConstraints::default());
        constraints.shapes = sizes(2);
        constraints.keep_shape();
        assert_eq!(constraints.open_shape_changes(), Some(ShapeChanges::NONE));
    }

    #[test]
    fn what_is_stored_reads_back_and_what_is_missing_is_empty() {
        let constraints = PlacementConstraints {
            shapes: vec![Shape {
                nodes: 4,
                duration: 60,
            }],
            estimate: Some(6),
            predicted_ppm: Some(950_000),
            room: Some((5, 9)),
            expires: Some(99),
            pieces_differ: true,
            cuts: Some(Cuts {
                pieces: 4,
                interval_ppm: 250_000,
                independent: true,
            }),
            shape_changes: Some(ShapeChanges {
                until: Some(8),
                ..ShapeChanges::NONE
            }),
            filters: vec![Filter::Word {
                attribute: "cpu_architecture".into(),
                is: "arm".into(),
            }],
            barred: vec![BarredResource {
                resource: "cluster".into(),
                sizes: Vec::new(),
                why: "Invalid qos specification".into(),
            }],
            fix_at_ppm: Some(250_000),
            promised: Some(7),
            priced_node_seconds: Some(240),
        };
        let text = serde_json::to_string(&constraints).unwrap();
        assert_eq!(
            serde_json::from_str::<PlacementConstraints>(&text).unwrap(),
            constraints
        );
        assert_eq!(
            serde_json::from_str::<PlacementConstraints>("{}").unwrap(),
            PlacementConstraints::default()
        );
    }
}
