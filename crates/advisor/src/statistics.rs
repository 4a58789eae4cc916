//! Means over windows or batches, and how sure they are.

use std::fmt;

/// Windows that the papers left out at either end of the forty-eight.
const TRIMMED_OF_48: usize = 4;

/// The fewest values from which the best and worst are left out.
const TRIM_COUNT_MIN: usize = 16;

/// A mean with its spread.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Their mean; 0 for none.
    pub mean: f64,
    /// Standard deviation of a value, with n − 1.
    pub deviation: f64,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t.
    pub confidence: f64,
}

impl Summary {
    /// Of these values.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        if count == 0 {
            return Self::default();
        }
        let n = count as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 {
            (squares / (n - 1.0)).sqrt()
        } else {
            0.0
        };
        Self {
            count,
            mean,
            deviation,
            confidence: student_t_quantile(count - 1) * deviation / n.sqrt(),
        }
    }

    /// Of these values without the best and the worst, as paper 002 has it: 4 of 48 at either end, in proportion for fewer.
    /// `None` for fewer than 16 values.
    pub fn trimmed(values: &[f64]) -> Option<Self> {
        if values.len() < TRIM_COUNT_MIN {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let cut = sorted.len() * TRIMMED_OF_48 / 48;
        Some(Self::of(&sorted[cut..sorted.len() - cut]))
    }

    /// Of the differences `a` − `b` of pairs. Their spread is much less than that of either where both saw the same draws.
    pub fn of_differences(a: &[f64], b: &[f64]) -> Self {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self::of(&differences)
    }

    /// Whether the confidence interval lies above zero.
    pub fn is_positive(&self) -> bool {
        self.mean - self.confidence > 0.0
    }
}

/// The probability that values which are zero in the mean have, by chance, a mean this far from it on either side (Student's
/// t-test). 1 for fewer than two values.
pub(crate) fn chance_of_mean(summary: &Summary) -> f64 {
    if summary.count < 2 || summary.mean == 0.0 {
        return 1.0;
    }
    if summary.deviation == 0.0 {
        return 0.0;
    }
    let t = summary.mean.abs() * (summary.count as f64).sqrt() / summary.deviation;
    (1.0 - student_t_within(t, summary.count - 1)).max(0.0)
}

/// The probability that Student's t lies between −`t` and `t` (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn student_t_within(t: f64, degrees: usize) -> f64 {
    let n = degrees as f64;
    let angle = (t / n.sqrt()).atan();
    let (sine, square) = (angle.sin(), angle.cos().powi(2));
    // 1 + 1/2·cos² + 1·3/(2·4)·cos⁴ + …, or 1 + 2/3·cos² + 2·4/(3·5)·cos⁴ + …
    let first = if degrees.is_multiple_of(2) { 1.0 } else { 2.0 };
    let (mut sum, mut term, mut factor) = (0.0, 1.0, first);
    for _ in 0..degrees / 2 {
        sum += term;
        term *= factor / (factor + 1.0) * square;
        factor += 2.0;
    }
    if degrees.is_multiple_of(2) {
        sine * sum
    } else {
        std::f64::consts::FRAC_2_PI * (angle + sine * angle.cos() * sum)
    }
}

/// Probabilities corrected for their number, so that the chance of even one error stays that of a single comparison (Holm, 1979);
/// in the order given.
pub(crate) fn correct_by_holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut least: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        let comparisons = (probabilities.len() - rank) as f64;
        least = least.max((probabilities[at] * comparisons).min(1.0));
        corrected[at] = least;
    }
    corrected
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.confidence)
    }
}

/// The 97.5 % point of Student's t: a table for few degrees of freedom, then the expansion in their inverse (Abramowitz and
/// Stegun, 26.7.5), which is right to three digits there.
fn student_t_quantile(degrees: usize) -> f64 {
    const FEW: [f64; 6] = [0.0, 12.706, 4.303, 3.182, 2.776, 2.571];
    if let Some(t) = FEW.get(degrees) {
        return *t;
    }
    let (z, n) = (1.959_964_f64, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / n + second / n.powi(2) + third / n.powi(3)
}

#[cfg(test)]
mod tests {
    use super::{Summary, chance_of_mean, correct_by_holm, student_t_quantile, student_t_within};

    fn assert_near(seen: f64, expected: f64) {
        assert!((seen - expected).abs() < 2e-3, "{seen} is not {expected}");
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, t) in [
            (1, 12.706),
            (5, 2.571),
            (6, 2.447),
            (10, 2.228),
            (29, 2.045),
            (47, 2.012),
            (1_000, 1.962),
        ] {
            assert_near(student_t_quantile(degrees), t);
        }
    }

    #[test]
    fn probabilities_are_those_of_the_tables() {
        for (degrees, t) in [
            (1, 12.706),
            (2, 4.303),
            (5, 2.571),
            (6, 2.447),
            (29, 2.045),
            (47, 2.012),
            (1_000, 1.962),
        ] {
            assert!(
                (student_t_within(t, degrees) - 0.95).abs() < 2e-4,
                "{degrees}: {}",
                student_t_within(t, degrees)
            );
        }
        for (degrees, t) in [(3, 5.841), (8, 3.355), (47, 2.685)] {
            assert!(
                (student_t_within(t, degrees) - 0.99).abs() < 2e-4,
                "{degrees}: {}",
                student_t_within(t, degrees)
            );
        }
        assert_near(student_t_within(0.0, 7), 0.0);
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        // t = 3 / (1.5811 / √5) = 4.2426 at 4 degrees.
        assert!((chance_of_mean(&Summary::of(&values)) - 0.013_24).abs() < 1e-4);
        assert_near(chance_of_mean(&Summary::of(&[-1.0, 1.0])), 1.0);
        assert_near(chance_of_mean(&Summary::of(&[2.0, 2.0])), 0.0);
        assert_near(chance_of_mean(&Summary::of(&[2.0])), 1.0);
    }

    #[test]
    fn many_comparisons_are_corrected_step_by_step() {
        let corrected = correct_by_holm(&[0.04, 0.01, 0.03, 0.5]);
        for (seen, expected) in corrected.iter().zip([0.09, 0.04, 0.09, 0.5]) {
            assert_near(*seen, expected);
        }
        assert_eq!(correct_by_holm(&[]), Vec::<f64>::new());
        assert_eq!(correct_by_holm(&[0.4, 0.9]), [0.8, 0.9]);
    }

    #[test]
    fn a_mean_has_its_deviation_and_interval() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_near(summary.mean, 3.0);
        assert_near(summary.deviation, 1.5811);
        assert_near(summary.confidence, 2.776 * 1.5811 / 5.0_f64.sqrt());
        assert_eq!(summary.to_string(), "3.0 ± 2.0");
        assert_eq!(Summary::of(&[]), Summary::default());
        assert_near(Summary::of(&[7.0]).confidence, 0.0);
    }

    #[test]
    fn trimming_leaves_out_both_ends_in_proportion() {
        let values: Vec<f64> = (0..48).map(f64::from).collect();
        let trimmed = Summary::trimmed(&values).unwrap();
        assert_eq!(trimmed.count, 40);
        assert_near(trimmed.mean, 23.5);
        assert_eq!(Summary::trimmed(&values[..24]).unwrap().count, 20);
        assert_eq!(Summary::trimmed(&values[..15]), None);
    }

    #[test]
    fn differences_of_pairs_are_surer_than_their_means() {
        let (a, b) = ([10.0, 20.0, 30.0], [9.0, 19.1, 28.9]);
        assert!(Summary::of_differences(&a, &b).is_positive());
        assert!(Summary::of_differences(&a, &b).confidence < Summary::of(&a).confidence);
    }
}
