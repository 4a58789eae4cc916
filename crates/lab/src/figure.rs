//! Figures for a paper: bars or lines with error bars, axes with units and a legend, as SVG.
//!
//! They are the same byte for byte on every run and need no font of the machine: the viewer sets the text.

use std::error::Error;
use std::ops::Range;

use advisor::statistics::Summary;
use plotters::coord::Shift;
use plotters::data::float::FloatPrettyPrinter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A figure.
#[must_use]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// File name without extension. An experiment gives its own to a figure without one.
    pub name: String,
    /// Title.
    pub title: String,
    /// The titles of the x axis and the y axis, with their units.
    labels: [&'static str; 2],
    /// The names of groups of bars; a point's x is its group's index. Without groups there are lines over a numeric axis.
    groups: Option<Vec<String>>,
    /// The compared series.
    series: Vec<Series>,
}

/// One of the things compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub(crate) label: String,
    /// Its points, by x.
    pub(crate) points: Vec<Point>,
}

impl Series {
    /// Points under a name.
    pub(crate) fn new(label: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            label: label.into(),
            points: points.into_iter().collect(),
        }
    }

    /// A bar for each mean, in the order of the groups.
    pub(crate) fn bars(label: impl Into<String>, means: impl IntoIterator<Item = Summary>) -> Self {
        let bars = (0..).zip(means);
        Self::new(label, bars.map(|(x, mean)| Point::mean(f64::from(x), &mean)))
    }

    /// A series for each label over the same x: at each x there are means, of which it shows the one in the label's place.
    pub(crate) fn over<L: Into<String>>(
        x: impl IntoIterator<Item = u32>,
        labels: impl IntoIterator<Item = L>,
        means: &[Vec<Summary>],
    ) -> Vec<Self> {
        let x: Vec<u32> = x.into_iter().take(means.len()).collect();
        let series = |(at, label)| {
            let points = x.iter().zip(means);
            Self::new(
                label,
                points.map(|(x, point)| Point::mean(f64::from(*x), &point[at])),
            )
        };
        labels.into_iter().enumerate().map(series).collect()
    }
}

/// A value with its error bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Where on the x axis.
    pub(crate) x: f64,
    /// The value.
    pub(crate) y: f64,
    /// Half the height of the error bar; 0 for none.
    pub(crate) error: f64,
}

impl Point {
    /// A value without an error bar.
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self { x, y, error: 0.0 }
    }

    /// A mean with its interval.
    pub(crate) fn mean(x: f64, mean: &Summary) -> Self {
        Self {
            error: mean.confidence,
            ..Self::new(x, mean.mean)
        }
    }
}

/// Width and height in pixels.
const SIZE: (u32, u32) = (720, 440);
/// Height of the title and the legend.
const HEAD: u32 = 66;
const TITLE: u32 = 17;
const TEXT: u32 = 13;
/// About as many numbers on an axis.
const NUMBERS: usize = 8;

const INK: RGBColor = RGBColor(34, 34, 34);
const GRID: RGBColor = RGBColor(221, 221, 221);
/// Colours that people of any colour vision tell apart (Okabe and Ito, 2008).
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Figure {
    /// A figure of nothing yet, under a title.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// With a file name of its own.
    pub(crate) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// With the title of the x axis.
    pub(crate) fn x(mut self, label: &'static str) -> Self {
        self.labels[0] = label;
        self
    }

    /// With the title of the y axis.
    pub(crate) fn y(mut self, label: &'static str) -> Self {
        self.labels[1] = label;
        self
    }

    /// With lines over a numeric axis.
    pub(crate) fn lines(mut self, series: impl Into<Vec<Series>>) -> Self {
        self.series = series.into();
        self
    }

    /// With bars in named groups.
    pub(crate) fn bars(mut self, groups: impl Into<Vec<String>>, series: impl Into<Vec<Series>>) -> Self {
        self.groups = Some(groups.into());
        self.lines(series)
    }

    /// As an SVG document.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        // A string takes everything, and no font is looked for.
        self.draw(&mut text).expect("a figure can be drawn into a string");
        text
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn Error + '_>> {
        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(HEAD);
        self.draw_head(&head)?;
        self.draw_plot(&body)?;
        area.present()?;
        drop((head, body));
        Ok(())
    }

    /// The title, and under it the series in a row, in two rows if one is too short.
    fn draw_head(&self, area: &Area) -> Result<(), Box<dyn Error + '_>> {
        let font = |size: u32, at: HPos| {
            let style = ("sans-serif", size).into_font().color(&INK);
            style.pos(Pos::new(at, VPos::Center))
        };
        let middle = SIZE.0.cast_signed() / 2;
        let title = font(TITLE, HPos::Center);
        area.draw(&Text::new(self.title.as_str(), (middle, 16), title))?;
        let width = |series: &Series| 34 + 7 * i32::try_from(series.label.chars().count()).unwrap_or(0);
        let total = |series: &[Series]| series.iter().map(width).sum::<i32>();
        let rows = 1 + usize::from(total(&self.series) > 2 * middle - 40);
        let per_row = self.series.len().div_ceil(rows).max(1);
        let mut colours = PALETTE.iter().cycle();
        for (series, y) in self.series.chunks(per_row).zip([38, 56]) {
            let mut x = middle - total(series) / 2;
            for (series, colour) in series.iter().zip(&mut colours) {
                area.draw(&Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()))?;
                let label = font(TEXT, HPos::Left);
                area.draw(&Text::new(series.label.as_str(), (x + 20, y), label))?;
                x += width(series);
            }
        }
        Ok(())
    }

    fn draw_plot(&self, area: &Area) -> Result<(), Box<dyn Error + '_>> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let heights = points().flat_map(|p| [p.y - p.error, p.y + p.error]);
        let y = extent_of_figure_axis(heights.chain([0.0]), 0.05);
        let (x, marks) = match &self.groups {
            // A mark a group.
            Some(groups) => (-0.5..groups.len().max(1) as f64 - 0.5, groups.len()),
            None => (extent_of_figure_axis(points().map(|p| p.x), 0.02), NUMBERS),
        };
        let printer = FloatPrettyPrinter {
            allow_scientific: false,
            min_decimal: 0,
            max_decimal: 5,
        };
        let name = |x: &f64| match &self.groups {
            Some(groups) => {
                let named = (groups.iter().zip(0..)).find(|(_, at)| (f64::from(*at) - x).abs() < 0.1);
                named.map(|(name, _)| name.clone()).unwrap_or_default()
            }
            None => printer.print(*x),
        };
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .margin_bottom(8)
            .x_label_area_size(46)
            .y_label_area_size(66)
            .build_cartesian_2d(x.clone(), y)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(("sans-serif", TEXT).into_font().color(&INK))
            .x_labels(marks)
            .y_labels(NUMBERS)
            .x_label_formatter(&name)
            .x_desc(self.labels[0])
            .y_desc(self.labels[1])
            .draw()?;
        let width = 0.8 / self.series.len() as f64;
        for (index, series) in self.series.iter().enumerate() {
            let colour = PALETTE[index % PALETTE.len()];
            let points = series.points.iter();
            // Where the bars of the series stand in their groups.
            let shift = self.groups.as_ref().map(|_| width * (index as f64 + 0.5));
            let middle = |p: &Point| shift.map_or(p.x, |shift| p.x - 0.4 + shift);
            if shift.is_some() {
                let side = 0.45 * width;
                let corners = |p: &Point| [(middle(p) - side, 0.0), (middle(p) + side, p.y)];
                let bar = |p: &Point| Rectangle::new(corners(p), colour.filled());
                chart.draw_series(points.clone().map(bar))?;
            } else {
                let line = points.clone().map(|p| (p.x, p.y));
                let stroke = colour.stroke_width(2);
                // Told apart without colour too.
                if index % 2 == 1 {
                    chart.draw_series(DashedLineSeries::new(line, 6, 4, stroke))?;
                } else {
                    chart.draw_series(LineSeries::new(line, stroke))?;
                }
                let dot = |p: &Point| Circle::new((p.x, p.y), 3, colour.filled());
                chart.draw_series(points.clone().map(dot))?;
            }
            let ink = if shift.is_some() { INK } else { colour };
            chart.draw_series(points.filter(|p| p.error > 0.0).map(|p| {
                ErrorBar::new_vertical(middle(p), p.y - p.error, p.y, p.y + p.error, ink.filled(), 6)
            }))?;
        }
        chart.draw_series([PathElement::new([(x.start, 0.0), (x.end, 0.0)], INK)])?;
        Ok(())
    }
}

/// From the least to the greatest of these values, with a border of a part of that; from 0 to 1 where they are one or none.
fn extent_of_figure_axis(values: impl Iterator<Item = f64>, border: f64) -> Range<f64> {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    if low >= high {
        return 0.0..1.0;
    }
    let border = border * (high - low);
    // A series that starts at zero is drawn from there.
    let low = if low == 0.0 { low } else { low - border };
    low..high + border
}

#[cfg(test)]
mod tests {
    use super::{Figure, Point, Series};

    fn figure() -> Figure {
        let series = |label: &str, scale: f64| {
            let point = |x: i32| Point {
                error: 0.5,
                ..Point::new(f64::from(x), scale * f64::from(x + 1))
            };
            Series::new(label, (0..3).map(point))
        };
        Figure::new("Gain <by> order & load")
            .x("load (%)")
            .y("gain (points)")
            .lines([series("EDF", 2.0), series("BJF", -1.0)])
    }

    fn bars() -> Figure {
        figure().bars(["×1", "×1.25", "×1.5"].map(str::to_owned), figure().series)
    }

    #[test]
    fn an_svg_names_its_axes_series_and_groups_and_escapes_them() {
        for figure in [bars(), figure()] {
            let svg = figure.svg();
            for text in [
                "load (%)",
                "gain (points)",
                "EDF",
                "BJF",
                "Gain &lt;by&gt; order &amp; load",
            ] {
                assert!(svg.contains(text), "{text} is missing in {svg}");
            }
            assert_eq!(svg, figure.svg(), "the same each time");
        }
        assert!(bars().svg().contains("×1.25"));
    }

    #[test]
    fn a_bar_ends_at_its_value() {
        let bar = |y: f64| {
            let mut figure = bars();
            figure.series[0].points[2].y = y;
            figure.series[0].points[2].error = 0.0;
            let svg = figure.svg();
            let bars = svg
                .lines()
                .filter(|line| line.contains("<rect") && line.contains("#0072B2"));
            // After that of the legend.
            bars.skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let (six, three) = (bar(6.0), bar(3.0));
        assert_eq!((six.len(), three.len()), (3, 3));
        assert_ne!(six[2], three[2]);
    }

    #[test]
    fn a_figure_without_points_is_still_a_figure() {
        let empty = figure().lines([]);
        assert!(empty.svg().trim_end().ends_with("</svg>"));
    }
}
