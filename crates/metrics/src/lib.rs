//! Metrics of the running service, and the text in which Prometheus reads them (exposition format 0.0.4).
//!
//! Each module that counts keeps plain values ([`Histogram`], numbers) behind a lock of its own, and writes them out when asked:
//! there is no registry that every module would have to know. Labels are words from closed lists, routes as templates and names
//! from the configuration, never an id, a party or a path: so the number of series is known beforehand.

use std::fmt::{Display, Write as _};

/// Upper bounds for durations, in seconds: from the time that a cached page of a database takes to a time that no client waits
/// for.
pub const SECONDS: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How many observations were at most so large, for a list of bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds: the last counts the values above all of them.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// An empty one, with bounds that rise.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Counts an observation.
    pub fn observe(&mut self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        // `at` is at most the number of bounds, and there is one count more.
        self.counts[at] += 1;
        self.sum += value;
    }
}

/// The kind of a family of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows while the process lives.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// The labels of a series: names and values. Any text in a value is escaped.
pub type Labels<'a> = [(&'static str, &'a str)];

/// A family of series as all who read the text see it.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, with the unit at its end.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// A sentence on its numbers.
    pub help: &'static str,
}

/// The metrics of a module: a constant for each, its kind, its name and a sentence on its numbers.
#[macro_export]
macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal: $help:literal;)+) => {
        $(const $constant: $crate::Metric = $crate::Metric {
            name: $name,
            kind: $crate::Kind::$kind,
            help: $help,
        };)+
    };
}

/// The text, a family at a time.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a family of series; the series written next belong to it.
    pub fn family(&mut self, metric: Metric) -> Family<'_> {
        let Metric { name, kind, help } = metric;
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing into a String cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {word}");
        Family {
            text: &mut self.0,
            name,
        }
    }

    /// A family of one series without labels.
    pub fn number(&mut self, metric: Metric, value: impl Display) {
        self.family(metric).sample(&[], value);
    }

    /// A family of series that differ in one label.
    pub fn numbers<W: AsRef<str>, V: Display>(
        &mut self,
        metric: Metric,
        label: &'static str,
        values: impl IntoIterator<Item = (W, V)>,
    ) {
        let mut family = self.family(metric);
        for (word, value) in values {
            family.sample(&[(label, word.as_ref())], value);
        }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.0
    }
}

/// A family that is being written.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// A series with a number.
    pub fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// A series with a distribution.
    pub fn histogram(&mut self, labels: &Labels<'_>, histogram: &Histogram) {
        let mut total = 0;
        let bounds = histogram.bounds.iter().copied().map(Some).chain([None]);
        for (count, bound) in histogram.counts.iter().zip(bounds) {
            total += count;
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
            self.line("_bucket", labels, Some(&bound), total);
        }
        self.line("_sum", labels, None, histogram.sum);
        self.line("_count", labels, None, total);
    }

    fn line(&mut self, suffix: &str, labels: &Labels<'_>, bound: Option<&str>, value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        for (place, (name, value)) in labels.clone().enumerate() {
            let _ = write!(self.text, "{}{name}=\"", if place == 0 { '{' } else { ',' });
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if labels.count() > 0 {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    metrics! {
        MANY = Counter "a_total": "How many.";
        LONG = Histogram "b": "How long.";
    }

    #[test]
    fn a_family_is_written_as_prometheus_reads_it() {
        let mut text = Exposition::default();
        let mut family = text.family(MANY);
        family.sample(&[], 3_u64);
        family.sample(&[("what", "a \"b\"\n\\"), ("to", "c")], 1);
        let expected = "# HELP a_total How many.\n# TYPE a_total counter\na_total 3\na_total{what=\"a \\\"b\\\"\\n\\\\\",to=\"c\"} 1\n";
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn a_bucket_counts_what_is_at_most_its_bound_and_the_last_one_everything() {
        let mut histogram = Histogram::new(&[0.5, 1.0]);
        for value in [0.25, 0.5, 0.75, 8.0] {
            histogram.observe(value);
        }
        let mut text = Exposition::default();
        text.family(LONG).histogram(&[("of", "x")], &histogram);
        let expected = "# HELP b How long.\n# TYPE b histogram\nb_bucket{of=\"x\",le=\"0.5\"} 2\n\
            b_bucket{of=\"x\",le=\"1\"} 3\nb_bucket{of=\"x\",le=\"+Inf\"} 4\nb_sum{of=\"x\"} 9.5\nb_count{of=\"x\"} 4\n";
        assert_eq!(text.finish(), expected);
    }
}
