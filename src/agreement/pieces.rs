//! Agreements whose work is done in pieces: one after another, each on a number of nodes of its own, saved at the end of each
//! and taken up again at the start of the next.
//!
//! The placement of such an agreement reaches from the start of its first piece to the end of its last; what lies between
//! two pieces is others'. Its service is Processing while a piece runs and Idle between two.
//!
//! Work that is not over at the end of its last piece, or of its slot where it was in one, may get one more: what it takes
//! beyond the contract is an overrun.

use scheduler::{Interval, Seconds, Time};
use serde::{Deserialize, Serialize};

use super::{Agreement, Money, Outcome, ServiceState, Stretch, part};
use crate::clock::{Micros, second_after};

/// One piece of an agreement's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Piece {
    /// Planned start and end.
    pub placement: Interval,
    /// How many nodes it has.
    pub nodes: u32,
    /// When its process really started.
    pub started: Option<Micros>,
    /// When it really ended; every piece before it has ended, too.
    pub ended: Option<Micros>,
    /// Of one that was added to its agreement's contract: the deadline that was agreed until then.
    pub deadline_before: Option<Time>,
    /// Whether its work was lost for good. What it has had is not paid then.
    pub lost: bool,
}

/// A piece as it is stored.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Stored {
    start: i64,
    end: i64,
    nodes: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_before: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lost: bool,
}

impl From<Stored> for Piece {
    fn from(stored: Stored) -> Self {
        Self {
            placement: Interval::new(Time(stored.start), Time(stored.end)),
            nodes: stored.nodes,
            started: stored.started,
            ended: stored.ended,
            deadline_before: stored.deadline_before.map(Time),
            lost: stored.lost,
        }
    }
}

impl From<Piece> for Stored {
    fn from(piece: Piece) -> Self {
        Self {
            start: piece.placement.start.seconds(),
            end: piece.placement.end.seconds(),
            nodes: piece.nodes,
            started: piece.started,
            ended: piece.ended,
            deadline_before: piece.deadline_before.map(Time::seconds),
            lost: piece.lost,
        }
    }
}

impl Piece {
    /// One that is planned for this time, with so many nodes.
    pub fn planned((placement, nodes): Stretch) -> Self {
        Self {
            placement,
            nodes,
            started: None,
            ended: None,
            deadline_before: None,
            lost: false,
        }
    }

    /// Node-seconds of its place.
    pub fn node_seconds(&self) -> u128 {
        u128::from(self.nodes) * u128::from(self.placement.duration().max(0).unsigned_abs())
    }

    /// When it is planned, and with how many nodes.
    pub fn stretch(&self) -> Stretch {
        (self.placement, self.nodes)
    }

    /// The time that its nodes are kept from others: its placement, cut at the second after it ended.
    pub fn occupied(&self) -> Interval {
        let Interval { start, end } = self.placement;
        let ended = self.ended.map_or(end, second_after);
        Interval::new(start, end.min(ended).max(start))
    }
}

impl Agreement {
    /// How many of its pieces are over; none where it is in one.
    pub fn pieces_over(&self) -> usize {
        self.pieces
            .iter()
            .take_while(|piece| piece.ended.is_some())
            .count()
    }

    /// How many of its pieces have begun; none where it is in one.
    pub fn pieces_begun(&self) -> usize {
        let runs = self.service == ServiceState::Processing && !self.pieces.is_empty();
        self.pieces_over() + usize::from(runs)
    }

    /// The window in which one of its pieces may lie while it has not begun: up to the start of the next, and from where it
    /// lies, or for the first of those that have not begun from the end of the one before. So the windows of two pieces never
    /// overlap, and wherever they move they follow each other. What is run again moves to no earlier place: there its job
    /// before may not be over.
    pub fn piece_window(&self, index: usize) -> Interval {
        let first = index <= self.pieces_begun();
        let before = index.checked_sub(1).and_then(|before| self.pieces.get(before));
        let start = match (before, self.pieces.get(index)) {
            (None, _) => self.ready,
            (Some(before), _) if first => before.occupied().end.max(self.ready),
            (Some(before), piece) => piece.map_or(before.placement.end, |piece| piece.placement.start),
        };
        let lies = self.pieces.get(index).filter(|_| self.waits_to_run_again());
        let start = lies.map_or(start, |piece| piece.placement.start.max(start));
        let next = self.pieces.get(index + 1);
        Interval::new(start, next.map_or(self.deadline, |next| next.placement.start))
    }

    /// The piece that runs now, or comes next; the last one when all are over. None where it is in one.
    pub fn piece(&self) -> Option<&Piece> {
        self.pieces.get(self.pieces_over()).or(self.pieces.last())
    }

    /// The number of the piece that runs, or ran last, from 1; 1 where it is in one.
    pub fn piece_number(&self) -> u32 {
        let over = self.pieces_over();
        let number = if self.service == ServiceState::Completed {
            over.max(1)
        } else {
            (over + 1).min(self.pieces.len().max(1))
        };
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The slot that it has now, or has next: its placement, or that of its piece.
    pub fn slot(&self) -> Interval {
        self.piece().map_or(self.placement, |piece| piece.placement)
    }

    /// The nodes that it has in that slot.
    pub fn slot_nodes(&self) -> u32 {
        self.piece().map_or(self.nodes, |piece| piece.nodes)
    }

    /// Node-seconds of its slot, or of all of its pieces.
    pub fn node_seconds(&self) -> u128 {
        match self.pieces.as_slice() {
            [] => u128::from(self.nodes) * u128::from(self.duration.unsigned_abs()),
            pieces => pieces.iter().map(Piece::node_seconds).sum(),
        }
    }

    /// The nodes that it has on the average of its time, to the nearest: all of them where none of its pieces has others.
    pub fn mean_nodes(&self) -> u32 {
        if self.pieces.is_empty() {
            return self.nodes;
        }
        let seconds = u128::from(seconds_of(&self.pieces).max(1).unsigned_abs());
        let mean = (self.node_seconds() + seconds / 2) / seconds;
        u32::try_from(mean).unwrap_or(self.nodes)
    }

    /// When the process really started that runs in its slot.
    pub fn slot_started(&self) -> Option<Micros> {
        self.piece().map_or(self.started, |piece| piece.started)
    }

    /// Notes when the process really started that runs in its slot.
    pub fn has_started(&mut self, at: Option<Micros>) {
        let over = self.pieces_over();
        match self.pieces.get_mut(over) {
            Some(piece) => {
                piece.started = at;
                self.started = self.started.or(at);
            }
            None => self.started = at,
        }
    }

    /// Notes that the piece is over that runs, if one does.
    pub fn end_piece(&mut self, at: Micros) {
        let over = self.pieces_over();
        if self.service == ServiceState::Processing
            && let Some(piece) = self.pieces.get_mut(over)
        {
            piece.ended = Some(at);
        }
    }

    /// Notes that the work that runs, or goes on next, is lost for good. Answers what the whole has come to: where that piece
    /// was beyond its contract, which it has had, it is stopped after that.
    pub fn lose(&mut self) -> Outcome {
        let over = self.pieces_over();
        if !self.adds_to_contract(over) {
            return Outcome::Lost;
        }
        self.pieces[over].lost = true;
        Outcome::Killed
    }

    /// Whether its work goes on in another piece once the one that runs is over.
    pub fn has_more_pieces(&self) -> bool {
        self.pieces_over() + 1 < self.pieces.len()
    }

    /// Gives one of its pieces another place, and maybe another number of nodes. What is said of the whole follows, and so does
    /// the deadline where a piece that was added goes beyond it: what the provider adds is not late.
    pub fn place_piece(&mut self, index: usize, (placement, nodes): Stretch) {
        let is_agreed = !self.adds_to_contract(index);
        if let Some(piece) = self.pieces.get_mut(index) {
            if is_agreed {
                self.duration += placement.duration() - piece.placement.duration();
            }
            (piece.placement, piece.nodes) = (placement, nodes);
        }
        self.reach_over_pieces();
    }

    /// Has what is said of the whole be what is said of its pieces, where it has any.
    fn reach_over_pieces(&mut self) {
        if let Some(whole) = whole(&self.pieces) {
            self.placement = whole;
            self.nodes = most_nodes(&self.pieces);
            self.deadline = self.deadline.max(whole.end);
        }
    }

    /// Moves the end of the last slot that it has.
    pub fn end_last_slot(&mut self, end: Time) {
        match self.pieces.last_mut() {
            Some(piece) => piece.placement.end = end,
            None => self.placement.end = end,
        }
        self.placement.end = end;
        self.deadline = self.deadline.max(end);
    }

    /// Adds a piece after the one that runs, with as many nodes; that is the only one where it was in one until now.
    pub fn add_piece(&mut self, placement: Interval) {
        let nodes = self.slot_nodes();
        if self.pieces.is_empty() {
            self.pieces.push(Piece {
                started: self.started,
                ..Piece::planned((self.placement, nodes))
            });
        }
        self.pieces.push(Piece {
            deadline_before: Some(self.deadline),
            ..Piece::planned((placement, nodes))
        });
        self.reach_over_pieces();
        self.fixed = true;
    }

    /// Gives up the piece that is to follow the one that runs and was added to its contract, if there is one; the deadline is
    /// again as it was before. What is in one piece then is in no pieces.
    #[must_use]
    pub fn without_rest(&self) -> Self {
        let mut without = self.clone();
        let next = self.pieces_over() + 1;
        if self.adds_to_contract(next) {
            without.deadline = self.pieces[next].deadline_before.unwrap_or(self.deadline);
            without.pieces.truncate(next);
            without.reach_over_pieces();
            if next == 1 {
                without.pieces.clear();
            }
        }
        without
    }

    /// Whether it has a piece of this index that lies beyond its contract: those before take as long as was agreed.
    pub fn adds_to_contract(&self, index: usize) -> bool {
        index < self.pieces.len() && seconds_of(&self.pieces[..index]) >= self.duration
    }

    /// Its slot, or its pieces, in order of time, each with its nodes.
    fn stretches(&self) -> Vec<Stretch> {
        match self.pieces.as_slice() {
            [] => vec![(self.placement, self.nodes)],
            pieces => pieces.iter().map(Piece::stretch).collect(),
        }
    }

    /// The times in which it has had nodes once it is over, in order, with how many; without those of work that was lost.
    fn used(&self) -> Vec<Stretch> {
        match self.pieces.as_slice() {
            [] => vec![(self.occupied(), self.nodes)],
            pieces => pieces[..self.pieces_over()]
                .iter()
                .filter(|piece| !piece.lost)
                .map(|piece| (piece.occupied(), piece.nodes))
                .collect(),
        }
    }

    /// Seconds of its slot, or of its pieces together.
    pub fn planned_seconds(&self) -> Seconds {
        self.stretches().iter().map(|(time, _)| time.duration()).sum()
    }

    /// Seconds that its slot, or its pieces together, are longer than its contract, because its work was not over.
    pub fn overrun(&self) -> Seconds {
        (self.planned_seconds() - self.duration).max(0)
    }

    /// Seconds beyond its contract that it has used once it is over.
    pub fn used_overrun(&self) -> Seconds {
        let used: Seconds = self.used().iter().map(|(time, _)| time.duration()).sum();
        (used - self.duration).clamp(0, self.overrun())
    }

    /// What these cost, at the rate that was agreed; none where nothing is priced.
    pub fn overrun_price(&self) -> Option<Money> {
        let agreed = first_seconds(&self.stretches(), self.duration);
        let seconds = self.used_overrun();
        // Whatever it has left of pieces before, it is what lies beyond the contract that it has had last.
        let used: Vec<_> = self.used().into_iter().rev().collect();
        Some(part(self.price?, first_seconds(&used, seconds), agreed))
    }

    /// What so many seconds more of what runs cost, at the rate that was agreed; none where nothing is priced.
    pub fn price_of_more(&self, seconds: Seconds) -> Option<Money> {
        let agreed = first_seconds(&self.stretches(), self.duration);
        let more = seconds.saturating_mul(self.slot_nodes().into());
        Some(part(self.price?, more, agreed))
    }

    /// The times in which it keeps nodes from others, with how many: what it occupies, or what each of its pieces does that
    /// is not given up.
    pub fn loads(&self) -> Vec<Stretch> {
        if self.pieces.is_empty() {
            return vec![(self.occupied(), self.nodes)];
        }
        let given_up = |piece: &&Piece| self.ended.is_some() && piece.ended.is_none();
        let kept = self.pieces.iter().filter(|piece| !given_up(piece));
        kept.map(|piece| (piece.occupied(), piece.nodes)).collect()
    }

    /// When the nodes are free again that it had last.
    pub fn released(&self) -> Time {
        let over = self.pieces_over().checked_sub(1);
        let last = over.and_then(|last| self.pieces.get(last));
        last.map_or_else(|| self.occupied().end, |piece| piece.occupied().end)
    }

    /// For how long the processes of its pieces have run by an instant, in microseconds.
    pub fn run_time_by(&self, now: Micros) -> Micros {
        let ran = |piece: &Piece| Some((piece.ended.unwrap_or(now) - piece.started?).max(0));
        self.pieces.iter().filter_map(ran).sum()
    }

    /// For how long its processes have run, in microseconds: from its start to its end, or so much for each piece.
    pub fn run_time(&self) -> Option<Micros> {
        let ran = |(from, to): (Micros, Micros)| (to - from).max(0);
        if self.pieces.is_empty() {
            return self.started.zip(self.ended).map(ran);
        }
        let each = self
            .pieces
            .iter()
            .filter_map(|piece| piece.started.zip(piece.ended));
        self.started.map(|_| each.map(ran).sum())
    }
}

/// From the start of the first piece to the end of the last; none without a piece.
pub fn whole(pieces: &[Piece]) -> Option<Interval> {
    let (first, last) = pieces.first().zip(pieces.last())?;
    Some(Interval::new(first.placement.start, last.placement.end))
}

/// Node-seconds of the first so many seconds of stretches.
fn first_seconds(stretches: &[Stretch], seconds: Seconds) -> i64 {
    let mut left = seconds;
    let mut node_seconds = 0_i64;
    for (time, nodes) in stretches {
        let taken = time.duration().clamp(0, left);
        left -= taken;
        node_seconds = node_seconds.saturating_add(taken.saturating_mul((*nodes).into()));
    }
    node_seconds
}

/// For how long pieces last, together.
pub fn seconds_of(pieces: &[Piece]) -> Seconds {
    pieces.iter().map(|piece| piece.placement.duration()).sum()
}

/// The most nodes that one of them has.
pub fn most_nodes(pieces: &[Piece]) -> u32 {
    pieces.iter().map(|piece| piece.nodes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MICROS_PER_SECOND;

    fn piece(start: i64, end: i64, ended_s: Option<i64>) -> Piece {
        Piece {
            ended: ended_s.map(|at| at * MICROS_PER_SECOND),
            ..Piece::planned((Interval::new(Time(start), Time(end)), 2))
        }
    }

    #[test]
    fn a_piece_keeps_its_nodes_until_the_second_after_its_end_and_never_beyond_its_place() {
        let at = |ended| piece(100, 110, ended).occupied().end;
        assert_eq!(
            [
                at(None),
                at(Some(104)),
                at(Some(110)),
                at(Some(300)),
                at(Some(90))
            ],
            [Time(110), Time(104), Time(110), Time(110), Time(100)]
        );
    }

    #[test]
    fn what_is_stored_reads_back() {
        let pieces = vec![piece(100, 110, Some(109)), piece(120, 130, None)];
        let text = serde_json::to_string(&pieces).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Piece>>(&text).unwrap(), pieces);
        assert_eq!(whole(&pieces), Some(Interval::new(Time(100), Time(130))));
    }
}
