//! Views of the plan that are shown again for a while, so that pages take no time of the planner's task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use planner::Result;
use tokio::sync::Mutex;

/// For how long a view is shown before another one is taken, for each row that it goes through: a second at 10,000 of them. To go through
/// one takes about a hundredth of that, so views take the same small part of the planner's time for any plan and any number of visitors.
const KEPT_PER_ROW: Duration = Duration::from_micros(100);

/// The last view of the plan of a kind, with when it was taken and for how long it is shown.
#[derive(Debug)]
pub(super) struct RecentView<T>(Mutex<Option<TakenView<T>>>);

/// When a view was taken, for how long it is shown before another one is, and the view.
type TakenView<T> = (Instant, Duration, Arc<T>);

impl<T> Default for RecentView<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> RecentView<T> {
    /// The last view where it is young enough at `now` for the number of its rows, else another one, which comes with that number.
    ///
    /// # Errors
    /// Those of `take`, where none has been taken yet. An old one is shown rather than none.
    pub(super) async fn recent(
        &self,
        now: Instant,
        take: impl Future<Output = Result<(T, usize)>>,
    ) -> Result<Arc<T>> {
        // The others wait for the one that has it taken, and share it.
        let mut last = self.0.lock().await;
        if let Some((taken, kept_for, view)) = &*last
            && now.saturating_duration_since(*taken) < *kept_for
        {
            return Ok(Arc::clone(view));
        }
        match take.await {
            Ok((view, rows)) => {
                let kept_for = KEPT_PER_ROW.saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX));
                Ok(Arc::clone(&last.insert((now, kept_for, Arc::new(view))).2))
            }
            Err(why) => last.as_ref().map(|(_, _, view)| Arc::clone(view)).ok_or(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use planner::Error;

    use super::*;

    #[tokio::test]
    async fn a_large_picture_is_shown_for_longer_and_an_old_one_rather_than_none() {
        let (pictures, taken) = (RecentView::default(), AtomicU32::new(0));
        let take = async || Ok((taken.fetch_add(1, Ordering::Relaxed) + 1, 10_000));
        let start = Instant::now();
        for (millis, seen) in [(0, 1), (1, 1), (999, 1), (1_000, 2), (1_999, 2)] {
            let now = start + Duration::from_millis(millis);
            let shown = pictures.recent(now, take()).await.unwrap();
            assert_eq!(*shown, seen, "after {millis} ms");
        }
        let later = start + Duration::from_mins(1);
        let fails = async || Err(Error::Unavailable);
        assert_eq!(*pictures.recent(later, fails()).await.unwrap(), 2);
        let none = RecentView::<u32>::default().recent(later, fails()).await;
        assert_eq!(none, Err(Error::Unavailable));
    }
}
