//! The mean of run times where some were stopped before they were over. Of a stopped run it is known only that it would have
//! taken longer.
//!
//! Without them long work would look rare, and with their own lengths it would look short. So the weight of each goes to the runs
//! that are known to be longer, in proportion to their weights (Efron's redistribution to the right, 1967; the resulting
//! distribution is the estimate of Kaplan and Meier, 1958).

use super::count_as_real;

/// The mean, in the unit of the run times. A stopped run without a known longer one counts with its own length, which is the
/// least that it can be. `None` of none at all. Takes n log n steps where any was stopped, else n.
pub(super) fn mean_with_stopped_runs(over: Vec<f64>, stopped: Vec<f64>) -> Option<f64> {
    let all = over.len() + stopped.len();
    if stopped.is_empty() {
        return (all > 0).then(|| over.into_iter().sum::<f64>() / count_as_real(all));
    }
    let over = over.into_iter().map(|run| (run, false));
    let mut runs: Vec<(f64, bool)> = over.chain(stopped.into_iter().map(|run| (run, true))).collect();
    // Of equal ones the completed runs come first: a run that was stopped there would have taken longer than they did.
    runs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut sum, mut weight) = (0.0, 1.0);
    for (at, (run, stopped)) in runs.into_iter().enumerate() {
        let longer = all - at - 1;
        if stopped && longer > 0 {
            weight *= count_as_real(longer + 1) / count_as_real(longer);
        } else {
            sum += run * weight;
        }
    }
    Some(sum / count_as_real(all))
}
