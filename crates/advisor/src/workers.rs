//! Work spread over threads, with results in the order of the items, so that they do not depend on which thread was faster.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads to use, and the receiver of reports about progress.
pub struct Workers<'a> {
    /// Threads, at least 1.
    pub threads: usize,
    /// Told after each item how many of how many are done. Called from any thread.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Workers<'_> {
    /// Applies `work` to each item.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
        thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, items.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(at) else { break };
                        let result = work(item);
                        if let Ok(mut results) = results.lock() {
                            results.push((at, result));
                        }
                        (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, items.len());
                    }
                });
            }
        });
        // A thread that panics while it works does not hold the lock, and the scope passes its panic on.
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// All cores. Each reports through `progress` how far they all are.
pub fn workers_on_all_cores(progress: &(dyn Fn(usize, usize) + Sync)) -> Workers<'_> {
    Workers {
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        progress,
    }
}

#[cfg(test)]
mod tests {
    use super::Workers;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_the_order_of_the_items_and_each_is_told() {
        let told = AtomicUsize::new(0);
        let items: Vec<u64> = (0..100).collect();
        let workers = Workers {
            threads: 4,
            progress: &|_, total| {
                assert_eq!(total, 100);
                told.fetch_add(1, Ordering::Relaxed);
            },
        };
        let squares = workers.map(&items, |item| item * item);
        assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
        assert_eq!(told.into_inner(), 100);
        assert_eq!(workers_of_none(), Vec::<u64>::new());
    }

    fn workers_of_none() -> Vec<u64> {
        let workers = Workers {
            threads: 4,
            progress: &|_, _| {},
        };
        workers.map(&[], |item: &u64| *item)
    }
}
