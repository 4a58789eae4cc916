//! What is known of the agreements that peers carry out: the follower writes it, the executor of a peer's resource reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::agreement::AtPeer;
use execution::JobStatus;
use task::lock::lock;
use tokio::sync::Notify;
use uuid::Uuid;

/// The agreements at peers that are not settled, by their ids. Cheap to clone, and one for all clones.
#[derive(Clone, Default)]
pub struct FollowedAgreements {
    present: Arc<Mutex<BTreeMap<Uuid, FollowedAgreement>>>,
    changed: Arc<Notify>,
}

/// An agreement at a peer that is not settled.
#[derive(Debug, Clone)]
pub(super) struct FollowedAgreement {
    /// As it is stored.
    pub(super) row: AtPeer,
    /// The id of the runs of ours: that of the agreement with which its work began, where it has changed since.
    pub(super) runs_of: Uuid,
    /// How its job stands; none where that is not known since the start.
    pub(super) job: Option<JobStatus>,
    /// Whether it is to be ended at its peer.
    pub(super) is_to_end: bool,
}

impl FollowedAgreement {
    fn is(&self, peer: &str, agreement: Uuid) -> bool {
        self.row.peer == peer && (self.row.agreement == agreement || self.runs_of == agreement)
    }
}

impl FollowedAgreements {
    /// Follows an agreement from now on. The runs of ours have the id `runs_of`.
    pub fn add(&self, row: AtPeer, runs_of: Uuid) {
        let following = FollowedAgreement {
            runs_of,
            row,
            job: None,
            is_to_end: false,
        };
        lock(&self.present).entry(following.row.id).or_insert(following);
        self.changed.notify_one();
    }

    /// How many there are at a peer.
    pub fn count(&self, peer: &str) -> usize {
        lock(&self.present)
            .values()
            .filter(|followed| followed.row.peer == peer)
            .count()
    }

    /// The price there of all at a peer together but for the one at the address `except`, in millionths. Lost ones cost nothing.
    pub fn cost(&self, peer: &str, except: Option<&str>) -> i64 {
        let present = lock(&self.present);
        let there = present.values().map(|present| &present.row);
        let is_replaced = |row: &AtPeer| except.is_some() && row.address.as_deref() == except;
        let there = there.filter(|row| row.peer == peer && !row.lost && !is_replaced(row));
        there.map(|row| row.price.map_or(0, |price| price.micros)).sum()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.present).is_empty()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<FollowedAgreement> {
        lock(&self.present).values().cloned().collect()
    }

    /// How the job of an agreement of ours stands at a peer; none where that is not known.
    pub(super) fn job(&self, peer: &str, agreement: Uuid) -> Option<JobStatus> {
        let present = lock(&self.present);
        let found = present.values().rfind(|followed| followed.is(peer, agreement))?;
        found.job.clone()
    }

    /// Asks for the end of an agreement of ours at a peer.
    pub(super) fn ask_to_end(&self, peer: &str, agreement: Uuid) {
        for one_agreement in lock(&self.present)
            .values_mut()
            .filter(|followed| followed.is(peer, agreement))
        {
            if !one_agreement.is_to_end {
                one_agreement.is_to_end = true;
                self.changed.notify_one();
            }
        }
    }

    /// Whether an agreement of ours is or is to be at a peer.
    pub fn has(&self, peer: &str, agreement: Uuid) -> bool {
        lock(&self.present).values().any(|one_agreement| {
            one_agreement.is(peer, agreement)
                && one_agreement.row.address.is_some()
                && !one_agreement.row.lost
        })
    }

    /// Notes the state of the job of an agreement. The runs of that job have the id `runs_of`.
    pub(super) fn note_job(&self, id: Uuid, runs_of: Uuid, job: JobStatus) {
        if let Some(agreement) = lock(&self.present).get_mut(&id) {
            agreement.job = Some(job);
            agreement.runs_of = runs_of;
        }
    }

    /// Whether the agreement at this address is that of another one of ours.
    pub fn is_of_another(&self, peer: &str, address: &str, agreement: Uuid) -> bool {
        let present = lock(&self.present);
        let mut there = present.values().filter(|present| present.row.peer == peer);
        there.any(|followed| {
            followed.row.address.as_deref() == Some(address) && followed.row.agreement != agreement
        })
    }

    /// Follows an agreement as it is stored from now on; no more where it is settled.
    pub fn replace(&self, row: AtPeer) {
        let mut present = lock(&self.present);
        if row.settled.is_some() {
            present.remove(&row.id);
        } else if let Some(followed) = present.get_mut(&row.id) {
            followed.row = row;
        }
    }

    /// Waits until there is something new to do.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}
