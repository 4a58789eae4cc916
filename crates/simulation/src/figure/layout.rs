//! Where everything of a figure goes.

use super::{Anchor, Colour, Figure, Plot, Point, Scene, Shape};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
/// Borders of the plot area: left, top, right, bottom.
const PLOT: [f64; 4] = [70.0, 76.0, 700.0, 380.0];

const INK: Colour = [34, 34, 34];
const GRID: Colour = [221, 221, 221];
/// Colours that people of any colour vision tell apart (Okabe and Ito, 2008).
const PALETTE: [Colour; 7] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [213, 94, 0],
    [204, 121, 167],
    [86, 180, 233],
    [110, 110, 110],
];

const TEXT: f64 = 13.0;
const TITLE: f64 = 16.0;
/// About as many steps on an axis.
const STEPS: f64 = 6.0;

/// Lays a figure out.
pub(super) fn scene(figure: &Figure) -> Scene {
    let [left, top, right, bottom] = PLOT;
    let mut scene = Scene {
        width: WIDTH,
        height: HEIGHT,
        title: figure.title.clone(),
        shapes: vec![Shape::Rectangle {
            at: [0.0, 0.0, WIDTH, HEIGHT],
            fill: [255; 3],
        }],
    };
    scene.text([WIDTH / 2.0, 26.0], TITLE, Anchor::Middle, &figure.title);
    let values = || figure.series.iter().flat_map(|series| &series.points);
    let y = Axis::over(
        values().flat_map(|p| [p.y - p.error, p.y + p.error]).chain([0.0]),
        [bottom, top],
    );
    let x = match &figure.plot {
        Plot::Bars { groups } => Axis {
            low: -0.5,
            high: groups.len().max(1) as f64 - 0.5,
            step: 1.0,
            pixels: [left, right],
        },
        Plot::Lines => Axis::over(values().map(|p| p.x), [left, right]),
    };
    scene.axes(figure, &x, &y);
    for (index, series) in figure.series.iter().enumerate() {
        let colour = PALETTE[index % PALETTE.len()];
        match &figure.plot {
            Plot::Bars { .. } => {
                let width = 0.8 / figure.series.len() as f64;
                for point in &series.points {
                    let middle = point.x - 0.4 + width * (index as f64 + 0.5);
                    scene.bar(
                        [x.at(middle - 0.45 * width), x.at(middle + 0.45 * width)],
                        point,
                        &y,
                        colour,
                    );
                }
            }
            Plot::Lines => scene.curve(&series.points, &x, &y, colour, index),
        }
    }
    scene.line([left, y.at(0.0)], [right, y.at(0.0)], 1.0, INK);
    scene.legend(figure);
    scene
}

/// A scale of round numbers.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
    /// Where low and high are drawn.
    pixels: [f64; 2],
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, pixels: [f64; 2]) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        let step = round_step((high - low) / STEPS);
        Self {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
            pixels,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.pixels[0] + part * (self.pixels[1] - self.pixels[0])
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let steps = ((self.high - self.low) / self.step).round().max(0.0);
        (0..)
            .map(f64::from)
            .take_while(move |at| *at <= steps)
            .map(|at| self.low + at * self.step)
    }

    /// A tick's number, with as many digits as the step needs.
    fn label(&self, value: f64) -> String {
        let digits = (0..6).find(|digits| {
            let scaled = self.step * 10.0_f64.powi(*digits);
            (scaled - scaled.round()).abs() < 1e-6
        });
        let digits = usize::try_from(digits.unwrap_or(6)).unwrap_or(0);
        // No "-0".
        let value = if value.abs() < self.step / 1e3 { 0.0 } else { value };
        format!("{value:.digits$}")
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10.0_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

impl Scene {
    fn axes(&mut self, figure: &Figure, x: &Axis, y: &Axis) {
        let [left, top, right, bottom] = PLOT;
        for value in y.ticks() {
            self.line([left, y.at(value)], [right, y.at(value)], 0.8, GRID);
            self.text(
                [left - 8.0, y.at(value) + 4.5],
                TEXT,
                Anchor::End,
                &y.label(value),
            );
        }
        match &figure.plot {
            Plot::Bars { groups } => {
                for (index, group) in groups.iter().enumerate() {
                    self.text([x.at(index as f64), bottom + 20.0], TEXT, Anchor::Middle, group);
                }
            }
            Plot::Lines => {
                for value in x.ticks() {
                    self.line([x.at(value), bottom], [x.at(value), bottom + 5.0], 1.0, INK);
                    self.text(
                        [x.at(value), bottom + 20.0],
                        TEXT,
                        Anchor::Middle,
                        &x.label(value),
                    );
                }
            }
        }
        self.line([left, top], [left, bottom], 1.0, INK);
        self.line([left, bottom], [right, bottom], 1.0, INK);
        self.text(
            [f64::midpoint(left, right), HEIGHT - 18.0],
            TEXT,
            Anchor::Middle,
            &figure.x_label,
        );
        self.shapes.push(Shape::Text {
            at: [22.0, f64::midpoint(top, bottom)],
            size: TEXT,
            anchor: Anchor::Middle,
            upwards: true,
            text: figure.y_label.clone(),
        });
    }

    fn bar(&mut self, [from, to]: [f64; 2], point: &Point, y: &Axis, fill: Colour) {
        let (top, bottom) = (y.at(point.y.max(0.0)), y.at(point.y.min(0.0)));
        self.shapes.push(Shape::Rectangle {
            at: [from, top, to - from, bottom - top],
            fill,
        });
        self.error_bar(f64::midpoint(from, to), point, y, INK);
    }

    fn curve(&mut self, points: &[Point], x: &Axis, y: &Axis, colour: Colour, index: usize) {
        for pair in points.windows(2) {
            let place = |p: &Point| [x.at(p.x), y.at(p.y)];
            self.shapes.push(Shape::Line {
                from: place(&pair[0]),
                to: place(&pair[1]),
                width: 2.0,
                colour,
                // Told apart without colour too.
                dashed: index % 2 == 1,
            });
        }
        for point in points {
            self.error_bar(x.at(point.x), point, y, colour);
            self.shapes.push(Shape::Dot {
                centre: [x.at(point.x), y.at(point.y)],
                radius: 3.5,
                fill: colour,
            });
        }
    }

    fn error_bar(&mut self, x: f64, point: &Point, y: &Axis, colour: Colour) {
        if point.error <= 0.0 {
            return;
        }
        let (low, high) = (y.at(point.y - point.error), y.at(point.y + point.error));
        self.line([x, low], [x, high], 1.2, colour);
        for end in [low, high] {
            self.line([x - 3.0, end], [x + 3.0, end], 1.2, colour);
        }
    }

    /// The series in a row under the title, in two rows if one is too short.
    fn legend(&mut self, figure: &Figure) {
        let width = |label: &str| 34.0 + 7.2 * label.chars().count() as f64;
        let total: f64 = figure.series.iter().map(|series| width(&series.label)).sum();
        let rows = if total > WIDTH - 40.0 { 2 } else { 1 };
        let per_row = figure.series.len().div_ceil(rows).max(1);
        for (row, series) in figure.series.chunks(per_row).enumerate() {
            let total: f64 = series.iter().map(|series| width(&series.label)).sum();
            let mut at = (WIDTH - total) / 2.0;
            let base = 47.0 + 17.0 * row as f64;
            for (index, series) in series.iter().enumerate() {
                let colour = PALETTE[(row * per_row + index) % PALETTE.len()];
                self.shapes.push(Shape::Rectangle {
                    at: [at, base - 9.0, 14.0, 10.0],
                    fill: colour,
                });
                self.text([at + 20.0, base], TEXT, Anchor::Start, &series.label);
                at += width(&series.label);
            }
        }
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], width: f64, colour: Colour) {
        self.shapes.push(Shape::Line {
            from,
            to,
            width,
            colour,
            dashed: false,
        });
    }

    fn text(&mut self, at: [f64; 2], size: f64, anchor: Anchor, text: &str) {
        self.shapes.push(Shape::Text {
            at,
            size,
            anchor,
            upwards: false,
            text: text.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn axes_have_round_steps_that_hold_all_values() {
        for (values, labels) in [
            (vec![0.0, 8.3], "0 2 4 6 8 10"),
            (vec![-0.9, 1.9], "-1.0 -0.5 0.0 0.5 1.0 1.5 2.0"),
            (vec![0.3, 1.1], "0.2 0.4 0.6 0.8 1.0 1.2"),
            (vec![46.0, 47.0], "46.0 46.2 46.4 46.6 46.8 47.0"),
            (vec![3.0], "0.0 0.2 0.4 0.6 0.8 1.0"),
        ] {
            let axis = Axis::over(values.iter().copied(), [0.0, 1.0]);
            let seen: Vec<String> = axis.ticks().map(|tick| axis.label(tick)).collect();
            assert_eq!(seen.join(" "), labels, "for {values:?}");
        }
    }
}
