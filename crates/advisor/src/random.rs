//! Random numbers that are the same on every machine and in every version.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64. Draws that belong to something (a window,
//! a job) come from a stream of their own, named by a path of numbers. So leaving one job out, or asking for a further draw, does
//! not change the numbers of the others.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

/// Largest mean that the multiplication method is used for at once: e⁻¹⁰⁰ is still far from the smallest number.
const POISSON_MEAN_MAX: f64 = 100.0;

impl Random {
    /// The stream of `seed` that the numbers of `path` name.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        let mut mixer = path.iter().fold(SplitMix(seed), |mixer, step| {
            SplitMix(SplitMix(mixer.0 ^ step).next())
        });
        Self {
            state: std::array::from_fn(|_| mixer.next()),
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), in steps of 2⁻⁵³.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2.0_f64.powi(-53)
    }

    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// One of the numbers below `count`, which is at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number from 0 to the count"
    )]
    pub fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Poisson with this mean. Takes time proportional to it.
    pub fn poisson(&mut self, mean: f64) -> u32 {
        let mut rest = mean.max(0.0);
        let mut count = 0;
        // A sum of Poisson numbers is a Poisson number; its mean is the sum of theirs.
        while rest > 0.0 {
            let part = rest.min(POISSON_MEAN_MAX);
            rest -= part;
            let limit = (-part).exp();
            let mut product = self.unit();
            while product > limit {
                count += 1;
                product *= self.unit();
            }
        }
        count
    }

    /// Normal with mean 0 and variance 1 (the polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.uniform(-1.0, 1.0), self.uniform(-1.0, 1.0));
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Gamma of this shape, at least 1, and scale (Marsaglia and Tsang, 2000).
    pub(crate) fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        let d = shape.max(1.0) - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let cube = (1.0 + c * x).powi(3);
            let u = 1.0 - self.unit();
            if cube > 0.0 && u.ln() < 0.5 * x * x + d - d * cube + d * cube.ln() {
                return d * cube * scale;
            }
        }
    }
}

/// The generator that seeds the other (Steele, Lea and Flood, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, SplitMix};

    const DRAWS: u32 = 40_000;

    /// Mean and variance of many draws.
    fn moments(mut draw: impl FnMut(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::new(7, &[1, 2]);
        let values: Vec<f64> = (0..DRAWS).map(|_| draw(&mut random)).collect();
        let mean = values.iter().sum::<f64>() / f64::from(DRAWS);
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(DRAWS);
        (mean, variance)
    }

    fn assert_near(seen: f64, expected: f64, part: f64) {
        assert!(
            (seen - expected).abs() < part * expected.abs().max(1.0),
            "{seen} is not near {expected}"
        );
    }

    #[test]
    fn splitmix_gives_its_published_numbers() {
        let mut mixer = SplitMix(1_234_567);
        assert_eq!(mixer.next(), 6_457_827_717_110_365_317);
        assert_eq!(mixer.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn xoshiro_gives_its_published_numbers() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn distributions_have_their_means_and_variances() {
        for mean in [5.0, 25.0, 80.0, 250.0] {
            let (seen, variance) = moments(|r| f64::from(r.poisson(mean)));
            assert_near(seen, mean, 0.01);
            assert_near(variance, mean, 0.05);
        }
        let (mean, variance) = moments(Random::normal);
        assert_near(mean, 0.0, 0.02);
        assert_near(variance, 1.0, 0.03);
        let (mean, variance) = moments(|r| r.gamma(4.2, 0.94));
        assert_near(mean, 4.2 * 0.94, 0.01);
        assert_near(variance, 4.2 * 0.94 * 0.94, 0.05);
        let (mean, _) = moments(|r| r.exponential(3.0));
        assert_near(mean, 3.0, 0.02);
    }

    #[test]
    fn streams_are_their_own_and_the_same_each_time() {
        let draw = |path: &[u64]| Random::new(3, path).bits();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[1]), draw(&[1, 0]));
        assert_ne!(Random::new(4, &[1]).bits(), draw(&[1]));
    }
}
