//! Agreements that have lost their place here and have no other: before they are broken, peers are asked to carry them out
//! (paper 004, section 3).
//!
//! Until their word has come, such an agreement lies on the resource of a peer, with no agreement of the peer's behind it. So it is
//! known after a restart, too.

use domain::agreement::{Agreement, AtPeer, EventKind, Stretch};
use domain::change::Change;
use scheduler::{Interval, Seconds};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::words::time_difference_in_words;

/// Seconds that peers have at least to be asked, before the slot begins.
const ASKED_WITHIN: Seconds = 15;

impl Decider<'_> {
    /// Stores an agreement at a peer, or that one is to be made there.
    pub fn put_at_peer(&mut self, row: AtPeer) {
        self.batch.push(Change::PutAtPeer(row));
    }

    /// Lets peers be asked for an agreement that has lost its only slot and has no other place; whether they can be.
    pub(crate) fn seek_at_peers(
        &mut self,
        agreement: &Agreement,
        index: usize,
        why: &str,
    ) -> Option<Agreement> {
        let is_whole = index == 0 && !agreement.slots.is_split();
        if !is_whole || !agreement.is_waiting() {
            return None;
        }
        let (slot, nodes) = agreement.slots[0].stretch();
        let start = slot.start.max(self.present_second() + ASKED_WITHIN);
        let later = Interval::of(start, slot.duration());
        if later.end > agreement.deadline {
            return None;
        }
        let (_, number) = self.plan.planned_slot(agreement, 0)?;
        let all = self.plan.resources.plans().enumerate();
        let peers = all.filter(|(_, each)| each.resource.is_peer() && !each.resource.is_retired());
        let peers: Vec<(usize, String)> = peers.map(|(at, peer)| (at, peer.resource.name.clone())).collect();
        let placed = peers.into_iter().find_map(|(at, resource)| {
            let mut placed = Agreement {
                resource,
                fixed: true,
                ..agreement.clone()
            };
            placed.place_slot(0, (later, nodes));
            placed.keep_promised_start(agreement, self.present_second());
            self.try_put_at_peer(&placed, number, at).then_some(placed)
        })?;
        let detail =
            format!("{why}, and there is no other place in its window here: other domains are asked");
        let event = self.event(EventKind::Forwarded, detail);
        Some(self.update(placed, vec![event]))
    }

    /// Has a peer carry out an agreement without a place.
    pub fn place_sought(&mut self, row: AtPeer, (slot, nodes): Stretch) -> Result<()> {
        let sought = self
            .plan
            .get(row.agreement)
            .filter(|plan| plan.is_waiting())
            .cloned();
        let at = self.plan.resources.place_of(&row.peer);
        if let Some((agreement, at)) = sought.zip(at) {
            let now = self.present_second();
            let before = agreement.slots[0].placement.start;
            let placed = self.run_trial(|this| {
                this.plan.take_slot_out(&agreement, 0, now);
                let (_, number) = this.plan.planned_slot(&agreement, 0)?;
                let mut placed = Agreement {
                    resource: row.peer.clone(),
                    fixed: true,
                    ..agreement.clone()
                };
                placed.place_slot(0, (slot, nodes));
                this.try_put_at_peer(&placed, number, at).then_some(placed)
            });
            let placed = placed.ok_or(Error::Unavailable)?;
            let moved = time_difference_in_words(slot.start - before);
            let event = self.event(EventKind::Moved, format!("to {}, {moved}", row.peer));
            self.update(placed, vec![event]);
        }
        self.batch.push(Change::PutAtPeer(row));
        Ok(())
    }

    /// Ends an agreement without a place that no peer carries out.
    pub fn end_sought(&mut self, id: Uuid) -> Result<()> {
        let agreement = self.live_agreement(id)?;
        if !self.is_at_peer(&agreement) {
            return Err(Error::NotFound);
        }
        let why = "its place is gone, and no other domain carries it out";
        if agreement.is_waiting() {
            let now = self.present_second();
            self.plan.take_slot_out(&agreement, 0, now);
            self.break_without_place(agreement, 0, why);
        } else {
            self.lose_agreement_because(agreement, EventKind::Broken, why.to_owned());
        }
        Ok(())
    }
}
