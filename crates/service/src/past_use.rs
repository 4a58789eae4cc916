//! How the resources were used lately: for operators. It takes time in proportion to the work of a week, so it is added up beside the
//! pages, which show the last sums.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use domain::agreement::Agreement;
use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::{Seconds, Time};
use store::agreements;
use store::past_use::{self, PastUse};

use crate::views::money_and_time::instant_as_date_time;
use crate::views::past_use::{PastUseView, PeriodUseView, ResourcePastUseView};
use crate::{Error, Result, Service};

/// The times that are added up, in seconds.
const PERIODS: [Seconds; 2] = [86_400, 7 * 86_400];
/// For how long sums are shown before others are made.
const KEPT: Micros = 600 * MICROS_PER_SECOND;

/// How the resources were used lately, as it was added up last; none where this is the first question since the start. Sums that are
/// older than ten minutes are made anew, without waiting for them.
pub fn show_past_use(service: &Service) -> Option<PastUseView> {
    let now = service.clock.micros();
    let mut sums = service.past_uses.0.lock().unwrap_or_else(PoisonError::into_inner);
    let is_old = sums.last.as_ref().is_none_or(|(at, _)| now - at >= KEPT);
    if is_old && !sums.are_being_made {
        sums.are_being_made = true;
        let own = service.clone();
        task::spawn(async move {
            let adds = own.clone();
            // One that panics is over, too.
            let made = task::spawn(async move { add_up_past_use(&adds, now).await }).await;
            let made = made.unwrap_or_else(|why| Err(Error::Internal(why.to_string())));
            let mut sums = own.past_uses.0.lock().unwrap_or_else(PoisonError::into_inner);
            sums.are_being_made = false;
            match made {
                Ok(view) => sums.last = Some((now, view)),
                Err(error) => tracing::warn!(%error, "the use of the resources was not added up"),
            }
        });
    }
    sums.last.as_ref().map(|(_, view)| view.clone())
}

async fn add_up_past_use(service: &Service, now: Micros) -> Result<PastUseView> {
    let second = Time(now / MICROS_PER_SECOND);
    let running = agreements::processing_agreements(&service.store).await?;
    let mut found: [BTreeMap<String, PastUse>; 2] = Default::default();
    for (found, period) in found.iter_mut().zip(PERIODS) {
        *found = past_use::past_use_of_resources(&service.store, second - period, second).await?;
        for running in &running {
            let used = past_use_of_running(running, (second - period).seconds() * MICROS_PER_SECOND, now);
            found.entry(running.resource.clone()).or_default().used += used;
        }
    }
    let resources = service.planner.resources();
    let in_use = resources.iter().filter(|resource| !resource.is_retired());
    let resources = in_use.map(|each| ResourcePastUseView {
        name: each.name.clone(),
        periods: [0, 1].map(|period| {
            let past = found[period].get(&each.name).copied().unwrap_or_default();
            PeriodUseView::of(past, i64::from(each.capacity).saturating_mul(PERIODS[period]))
        }),
    });
    Ok(PastUseView {
        at: instant_as_date_time(now),
        resources: resources.collect(),
    })
}

/// The node-microseconds since an instant of the processes of an agreement that run.
fn past_use_of_running(agreement: &Agreement, since: Micros, now: Micros) -> Micros {
    let running = agreement.slots.iter().filter(|slot| slot.ended.is_none());
    let used = running.filter_map(|slot| {
        let ran = (now - slot.started?.max(since)).max(0);
        Some(ran.saturating_mul(slot.nodes.into()))
    });
    used.sum()
}
