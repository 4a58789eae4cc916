//! Requests for work that may run in pieces, and where the pieces go.
//!
//! A request for work that can stop and resume says how often and where (`S_p` = (N, I, M) of adaptive requests, section 3.1): at
//! most N pieces, cut at multiples of I of the work, and M whether each may have its own number of nodes. The pieces keep their
//! order and never overlap, so one that completes earlier never hurts those after it. Therefore the search has to remember only
//! the earliest completion of each part of the work, found once.

use crate::moldable::{Shapes, SizeChoice, WHOLE_PPM, nearest_moldable_duration, part_of_seconds};
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds};

/// The most parts into which work can be cut. Cutting finer than a hundredth would cost more searches than it fills gaps.
pub const PARTS_MAX: u32 = 100;

/// How the work of a request may be cut (`S_p`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preemption {
    pieces_max: u32,
    interval_ppm: u32,
    independent: bool,
    rounding: Rounding,
}

/// How long the parts of work of whole seconds last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Each piece lasts its share of the whole, rounded by itself, as published: together they may last some seconds more or
    /// less than the whole.
    Pieces,
    /// The cuts are rounded to whole seconds of the work, and a piece lasts from cut to cut: together they last exactly as
    /// long as the whole, where all are on one number of nodes.
    Cuts,
    /// Each piece lasts its share of the whole, rounded up: all of the work is done for any number of nodes of each piece.
    Up,
}

/// A part of a request's work, without a break on one number of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// From its start up to its completion.
    pub interval: Interval,
    /// Nodes throughout.
    pub nodes: u32,
    /// Millionths of the request's work that it does.
    pub work_ppm: u32,
}

impl Preemption {
    /// No cut: the work is one piece.
    pub const NONE: Self = Self {
        pieces_max: 1,
        interval_ppm: WHOLE_PPM,
        independent: false,
        rounding: Rounding::Pieces,
    };

    /// At most `pieces_max` pieces (N; `u32::MAX` for any number), cut at multiples of `interval_ppm` millionths of the
    /// work (I), each with its own number of nodes where `independent` (M), else all with the same. `None` for no piece, and for
    /// an interval that is not above zero and up to the whole, or makes more than [`PARTS_MAX`] parts.
    pub fn new(pieces_max: u32, interval_ppm: u32, independent: bool) -> Option<Self> {
        let cuts = interval_ppm <= WHOLE_PPM && WHOLE_PPM <= interval_ppm.saturating_mul(PARTS_MAX);
        (pieces_max > 0 && cuts).then_some(Self {
            pieces_max,
            interval_ppm,
            independent,
            rounding: Rounding::Pieces,
        })
    }

    /// These cuts with the durations of the pieces rounded in another way than the published one.
    #[must_use]
    pub fn rounded(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// These cuts with the durations of the pieces rounded so that all of the work is done, for work that may have so many sizes.
    /// Where each piece may have another size, none may be short: the next one does not make up for it.
    #[must_use]
    pub fn whole_for(self, sizes: usize) -> Self {
        self.rounded(if self.independent && sizes > 1 {
            Rounding::Up
        } else {
            Rounding::Cuts
        })
    }

    /// Millionths of the work between neighbouring cuts (I).
    pub fn interval_ppm(&self) -> u32 {
        self.interval_ppm
    }

    /// The most pieces that the work can really be in: no more than N, and no more than I makes.
    pub fn pieces_max(&self) -> u32 {
        self.pieces_max.min(self.parts())
    }

    /// The parts between neighbouring cuts; the last may be smaller than the others.
    pub fn parts(&self) -> u32 {
        WHOLE_PPM.div_ceil(self.interval_ppm)
    }

    /// Whether each piece may have its own number of nodes (M).
    pub fn independent(&self) -> bool {
        self.independent
    }

    /// The flexibility factor (adaptive requests, section 3.2): the number of shapes that a request of this many sizes allows, counting
    /// every way to cut it and every choice of sizes for the pieces; `u64::MAX` where there are more. O(N).
    pub fn flexibility(&self, sizes: usize) -> u64 {
        let sizes = sizes as u128;
        let cuts = u128::from(self.parts() - 1);
        let mut shapes: u128 = 0;
        // Ways to make `made` cuts, and sizes of that many pieces and one.
        let (mut ways, mut choices) = (1_u128, sizes);
        for made in 0..u128::from(self.pieces_max()) {
            shapes = shapes.saturating_add(ways.saturating_mul(choices));
            ways = ways.saturating_mul(cuts - made) / (made + 1);
            if self.independent() {
                choices = choices.saturating_mul(sizes);
            }
        }
        u64::try_from(shapes).unwrap_or(u64::MAX)
    }

    /// The most searches of the plan that [`Preemption::place`] makes for a request of this many sizes: s for each part where
    /// every cut may be made, else s for each pair of cuts and each piece.
    pub fn searches_max(&self, sizes: usize) -> u64 {
        let (parts, pieces) = (u64::from(self.parts()), u64::from(self.pieces_max()));
        let runs = if pieces == parts {
            parts
        } else {
            pieces * parts * (parts + 1) / 2
        };
        runs.saturating_mul(sizes as u64)
    }

    /// The pieces still to come after those `started`, inside `window`, so that the last completes as early as it can.
    /// Each starts no earlier than the one before it ends. Empty when the started ones do all the work.
    ///
    /// Where every cut may be made (N·I ≥ 1) every cut is made, and each piece in order takes its earliest completion.
    /// With fewer pieces the cuts are chosen, and of plans that complete together the one of fewest pieces is taken.
    /// Of equal completions more nodes win. For [`Preemption::searches_max`] see there; each is logarithmic.
    pub fn place(
        &self,
        slots: &SlotTree,
        shapes: &Shapes,
        started: &[Piece],
        window: Interval,
    ) -> Option<Vec<Piece>> {
        let done_ppm: u32 = started.iter().map(|piece| piece.work_ppm).sum();
        if done_ppm >= WHOLE_PPM {
            return Some(Vec::new());
        }
        let ended = started.last().map_or(window.start, |piece| piece.interval.end);
        let search = PreemptiveSearch {
            slots,
            interval_ppm: self.interval_ppm,
            parts: self.parts(),
            first: done_ppm / self.interval_ppm,
            pieces: self.pieces_max.saturating_sub(u32::try_from(started.len()).ok()?),
            rounding: self.rounding,
        };
        let window = Interval::new(window.start.max(ended), window.end);
        if self.independent || self.pieces_max() == 1 {
            return search.pieces_of(shapes, window);
        }
        match started.first() {
            Some(piece) => search.pieces_of(&shapes.only(piece.nodes)?, window),
            None => search.pieces_of_one_size(shapes, window),
        }
    }
}

/// The search for the pieces of one request.
struct PreemptiveSearch<'a> {
    slots: &'a SlotTree,
    interval_ppm: u32,
    /// Parts of the whole work.
    parts: u32,
    /// The first part still to be done.
    first: u32,
    /// Pieces that may still be made.
    pieces: u32,
    rounding: Rounding,
}

impl PreemptiveSearch<'_> {
    /// All pieces on the same number of nodes, whichever completes first.
    fn pieces_of_one_size(&self, shapes: &Shapes, window: Interval) -> Option<Vec<Piece>> {
        let mut best = None;
        let mut rest = window;
        for (nodes, _) in shapes.iter() {
            if let Some(pieces) = self.pieces_of(&shapes.only(nodes)?, rest) {
                rest.end = pieces.last().map_or(window.start, |piece| piece.interval.end - 1);
                best = Some(pieces);
            }
        }
        best
    }

    /// The pieces, each on whichever number of nodes lets it complete first.
    fn pieces_of(&self, shapes: &Shapes, window: Interval) -> Option<Vec<Piece>> {
        if self.pieces >= self.parts - self.first {
            self.at_every_cut(shapes, window)
        } else {
            self.at_chosen_cuts(shapes, window)
        }
    }

    fn at_every_cut(&self, shapes: &Shapes, mut window: Interval) -> Option<Vec<Piece>> {
        let mut pieces = Vec::with_capacity((self.parts - self.first) as usize);
        for part in self.first..self.parts {
            let piece = self.piece(shapes, part, part + 1, window)?;
            window.start = piece.interval.end;
            pieces.push(piece);
        }
        Some(pieces)
    }

    /// The earliest completion of every leading run of parts in at most one piece, then in at most two, and so on. It is
    /// enough to keep one plan for each run, because a later start never completes sooner.
    fn at_chosen_cuts(&self, shapes: &Shapes, window: Interval) -> Option<Vec<Piece>> {
        // The pieces of all plans kept, each with the piece before it in its plan.
        let mut trail: Vec<(Piece, Option<usize>)> = Vec::new();
        // The last piece of the plan for the parts up to each cut, in at most as many pieces as rounds made.
        let cuts = (self.parts - self.first) as usize + 1;
        let mut best: Vec<Option<usize>> = vec![None; cuts];
        for _ in 0..self.pieces {
            let before = best.clone();
            for to in 1..cuts {
                let mut rest = window;
                if let Some(last) = before[to] {
                    rest.end = trail[last].0.interval.end - 1;
                }
                for from in (0..to).filter(|from| *from == 0 || before[*from].is_some()) {
                    rest.start = before[from].map_or(window.start, |last| trail[last].0.interval.end);
                    if let Some(piece) = self.piece(shapes, self.part(from), self.part(to), rest) {
                        rest.end = piece.interval.end - 1;
                        best[to] = Some(trail.len());
                        trail.push((piece, before[from]));
                    }
                }
            }
        }
        let mut at = Some(best[cuts - 1]?);
        let mut pieces = Vec::new();
        while let Some((piece, before)) = at.map(|at| trail[at]) {
            pieces.push(piece);
            at = before;
        }
        pieces.reverse();
        Some(pieces)
    }

    /// The part that begins at the cut `index` cuts after the work already started.
    #[expect(clippy::cast_possible_truncation, reason = "at most PARTS_MAX cuts")]
    fn part(&self, index: usize) -> u32 {
        self.first + index as u32
    }

    /// The parts from `from` up to `to` as one piece.
    fn piece(&self, shapes: &Shapes, from: u32, to: u32, window: Interval) -> Option<Piece> {
        let end_ppm = WHOLE_PPM.min(to * self.interval_ppm);
        let start_ppm = from * self.interval_ppm;
        let work_ppm = end_ppm - start_ppm;
        let lasts = |seconds| match self.rounding {
            Rounding::Pieces => part_of_seconds(seconds, work_ppm),
            Rounding::Cuts => {
                second_of_preemptive_cut(seconds, end_ppm) - second_of_preemptive_cut(seconds, start_ppm)
            }
            Rounding::Up => seconds_covering_preemptive_piece(seconds, work_ppm),
        };
        let SizeChoice { interval, nodes } = shapes.first_to_complete(self.slots, window, lasts)?;
        Some(Piece {
            interval,
            nodes,
            work_ppm,
        })
    }
}

/// The second of the work at which `ppm` millionths of it are done: to the nearest, halves to even; the end of the work is
/// where it is for the whole.
fn second_of_preemptive_cut(seconds: f64, ppm: u32) -> Seconds {
    match ppm {
        WHOLE_PPM => part_of_seconds(seconds, ppm),
        ppm => nearest_moldable_duration(seconds, ppm),
    }
}

/// The least whole seconds that `ppm` millionths of `seconds` fit in, at least one, without the error that floating point has
/// added.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a duration is at most 2⁴⁰ seconds"
)]
fn seconds_covering_preemptive_piece(seconds: f64, ppm: u32) -> Seconds {
    let share = f64::from(ppm) / f64::from(WHOLE_PPM);
    ((share * seconds - 1e-6).ceil() as Seconds).max(1)
}
