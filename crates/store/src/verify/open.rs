//! The check of the open state, and what a plan is rebuilt from: at a start both use the same rows, which are read once.

use std::sync::Arc;

use domain::agreement::{Agreement, MoveRecord};
use domain::resources::Binding;
use scheduler::Time;
use uuid::Uuid;

use super::agreement_page::{AgreementPage, OPEN};
use super::findings::{Finding, finding_of_two_owners};
use super::overbooked_peaks::read_capacities_for_peaks;
use super::{Verification, moves, offers, timeline};
use crate::engine::{Connection, Error, Record, Result, statements};
use crate::records::bindings::sort_stored_bindings;
use crate::records::open_state::{OpenState, count_open_agreements};
use crate::records::recorded_moves::LatestMoves;
use crate::store::Store;

impl Store {
    /// Checks what [`Store::verify`] does for open agreements, held offers and the nodes that are bound, but for the audit trail. Takes
    /// time in proportion to these, for any length of the history.
    ///
    /// # Errors
    /// The errors of reading; a row that cannot be read is a finding.
    pub async fn verify_open(&self, now: Time) -> Result<Vec<Finding>> {
        let mut snapshot = self.snapshot().await?;
        let (mut check, _) = begin_check_of_open(&mut snapshot).await?;
        check
            .check_open_agreements(&mut snapshot, (Uuid::nil(), Uuid::max()), |_| ())
            .await?;
        check.check_held_nodes(&mut snapshot, now).await?;
        snapshot.rollback().await?;
        Ok(check.finish())
    }

    /// Reads what a plan is rebuilt from, and makes the checks of [`Store::verify_open`] on the way. The inner error is what these find.
    ///
    /// Only for the holder of the lease: two halves of the agreements are read beside each other, each by a transaction of its own.
    ///
    /// # Errors
    /// The errors of reading.
    pub async fn read_checked_open_state(
        &self,
        now: Time,
    ) -> Result<std::result::Result<OpenState, Vec<Finding>>> {
        let mut snapshot = self.snapshot().await?;
        let (mut check, moves) = begin_check_of_open(&mut snapshot).await?;
        let count = count_open_agreements(&mut snapshot).await?;
        let half = [(count / 2).into()];
        let middle = snapshot.read(statements::LIVE_ID, &half, |row| row.id("id"));
        let middle = middle.await?.pop().unwrap_or(Uuid::max());
        let (store, beside) = (self.clone(), check.beside());
        let most = count.div_ceil(2) as usize;
        let later = task::spawn(async move { store.check_open_after(beside, middle, most).await });
        // Each takes a kilobyte, and to make room for ever more of them would move all.
        let mut agreements = Vec::with_capacity(count as usize);
        check
            .check_open_agreements(&mut snapshot, (Uuid::nil(), middle), |agreement| {
                agreements.push(agreement);
            })
            .await?;
        let bindings = check.check_held_nodes(&mut snapshot, now).await?;
        let later = later.await;
        let (later, more) = later.map_err(|why| Error::Corrupt(format!("a check has failed: {why}")))??;
        check.join(later);
        agreements.extend(more);
        let findings = check.finish();
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        let state = OpenState::around(&mut snapshot, now, (agreements, moves, bindings)).await?;
        snapshot.rollback().await?;
        Ok(Ok(state))
    }

    /// Checks the open agreements after one, and answers with them: about `most`.
    async fn check_open_after(
        &self,
        mut check: Verification,
        after: Uuid,
        most: usize,
    ) -> Result<(Verification, Vec<Agreement>)> {
        let mut snapshot = self.snapshot().await?;
        let mut agreements = Vec::with_capacity(most);
        check
            .check_open_agreements(&mut snapshot, (after, Uuid::max()), |agreement| {
                agreements.push(agreement);
            })
            .await?;
        snapshot.rollback().await?;
        Ok((check, agreements))
    }
}

/// Reads what the check of each agreement needs, and the recorded moves.
async fn begin_check_of_open(connection: &mut Connection) -> Result<(Verification, Vec<MoveRecord>)> {
    let mut check = Verification {
        capacities: read_capacities_for_peaks(connection).await?,
        ..Verification::default()
    };
    let records = moves::read_moves_to_check(connection, &mut check.findings).await?;
    check.moved = LatestMoves::of(&records).into();
    Ok((check, records))
}

impl Verification {
    /// A check of other agreements beside this one.
    fn beside(&self) -> Self {
        Self {
            capacities: self.capacities.clone(),
            moved: Arc::clone(&self.moved),
            ..Self::default()
        }
    }

    /// Takes over what a check beside has found and summed up.
    fn join(&mut self, beside: Self) {
        self.findings.extend(beside.findings);
        for (resource, loads) in beside.loads {
            self.add_loads(&resource, loads);
        }
    }

    /// Checks the open agreements after one, up to another, and hands them on page by page.
    async fn check_open_agreements(
        &mut self,
        connection: &mut Connection,
        (mut after, until): (Uuid, Uuid),
        mut take: impl FnMut(Agreement) + Send,
    ) -> Result<()> {
        while let Some(page) = AgreementPage::read(connection, (after, until), OPEN).await? {
            let values = [after.into(), page.last.into()];
            let mut lives = timeline::read_timelines_between(connection, values, &mut self.findings).await?;
            after = page.last;
            self.check_page(page, &mut lives).for_each(&mut take);
        }
        Ok(())
    }

    /// Checks the held offers and the nodes that are bound, and answers with the bindings.
    async fn check_held_nodes(&mut self, connection: &mut Connection, now: Time) -> Result<Vec<Binding>> {
        offers::check_offers(connection, self, statements::OFFERS_HELD_NOW).await?;
        let open = [now.into()];
        let bindings = connection.read(statements::LIVE_BINDINGS, &open, Binding::of);
        let bindings = sort_stored_bindings(bindings.await?);
        for pair in bindings.windows(2) {
            let [one, other] = pair else { continue };
            let same = (&one.resource, one.node) == (&other.resource, other.node);
            if same && other.interval.start < one.interval.end {
                let from = other.interval.start;
                let two = (one.agreement, other.agreement);
                self.findings
                    .push(finding_of_two_owners(&one.resource, one.node.into(), from, two));
            }
        }
        Ok(bindings)
    }
}
