//! I5 and I6 of an agreement with work that is done in pieces. The pieces follow each other. Together they take as long as was
//! agreed, or longer where the timeline says why. Each has had its own nodes in its own time.

use domain::agreement::{Agreement, ServiceState};
use domain::resources::Binding;
use scheduler::counted;

use super::findings::Findings;
use super::findings::Invariant::{I5, I6};
use super::timeline::TimelineCheck;

pub(super) fn check_pieces(agreement: &Agreement, life: Option<&TimelineCheck>, found: &mut Findings) {
    let pieces = agreement.slots.pieces();
    if pieces.is_empty() {
        return;
    }
    let pairs = || pieces.iter().zip(pieces.iter().skip(1));
    let ordered = pieces.iter().all(|piece| !piece.placement.is_empty())
        && pairs().all(|(one, next)| one.occupied().end <= next.placement.start);
    found.must(ordered, I6, || "its pieces do not follow each other".to_owned());
    let seconds = agreement.planned_seconds();
    let may_be_longer = seconds > agreement.duration && life.is_some_and(|life| life.overran);
    found.must(seconds == agreement.duration || may_be_longer, I6, || {
        let agreed = agreement.duration;
        let seconds = counted(seconds, "second");
        format!("its pieces take {seconds} together, and {agreed} were agreed")
    });
    let over = agreement.slots_over();
    let in_order = pieces[over..].iter().all(|piece| piece.ended.is_none());
    found.must(in_order, I6, || {
        "a piece of it is over before one that comes first".to_owned()
    });
    let fits = match agreement.service {
        ServiceState::NotReady => over == 0,
        ServiceState::Idle => 0 < over && over < pieces.len(),
        ServiceState::Processing => over < pieces.len(),
        ServiceState::Completed => true,
    };
    found.must(fits, I6, || {
        let (service, all) = (agreement.service, pieces.len());
        format!("its service is {service} and {over} of its {all} pieces are over")
    });
}

/// Each binding lies in the time of a piece that has begun, which has as many as there are nodes.
pub(super) fn check_piece_bindings(agreement: &Agreement, bindings: &[Binding], found: &mut Findings) {
    let begun = match agreement.service {
        ServiceState::Processing => agreement.slots_over() + 1,
        _ => agreement.slots_over(),
    };
    let mut known = 0;
    for (piece, number) in agreement.slots.iter().zip(1..=begun) {
        let time = piece.occupied();
        let own: Vec<_> = bindings
            .iter()
            .filter(|binding| time.contains(binding.interval))
            .collect();
        known += own.len();
        let runs = number == begun && agreement.service == ServiceState::Processing;
        // Of one that has ended within its first second nothing is left.
        let right = own.len() == piece.nodes as usize || !runs && own.is_empty();
        found.must(right, I5, || {
            format!(
                "its piece {number} has {} instead of {}",
                counted(own.len(), "node"),
                piece.nodes
            )
        });
        let kept = !runs || own.iter().all(|binding| binding.interval.end == time.end);
        found.must(kept, I5, || {
            format!(
                "some nodes of its piece {number} are not its own until {}",
                time.end
            )
        });
    }
    found.must(known == bindings.len(), I5, || {
        let others = bindings.len() - known;
        format!("{others} of its nodes belong to none of its pieces")
    });
}
