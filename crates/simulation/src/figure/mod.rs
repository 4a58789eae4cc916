//! Figures for a paper: bars or lines with error bars, axes with units and a legend, as SVG and as PNG.
//!
//! A figure is laid out once, into a [`Scene`] of a few primitives, which both formats draw. So they show the same, byte for
//! byte the same on every run, and need neither a font nor a graphics library of the machine: SVG leaves its text to the
//! viewer, PNG draws it with [`glyphs`].

mod glyphs;
mod layout;
mod png;
mod svg;

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// File name without extension.
    pub name: String,
    /// Title.
    pub title: String,
    /// What the x axis shows, with its unit.
    pub x_label: String,
    /// What the y axis shows, with its unit.
    pub y_label: String,
    /// Bars or lines.
    pub plot: Plot,
    /// What is compared.
    pub series: Vec<Series>,
}

/// How the points are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plot {
    /// Bars in named groups; a point's x is its group's index.
    Bars {
        /// The groups' names.
        groups: Vec<String>,
    },
    /// Lines over a numeric axis.
    Lines,
}

/// One of the things compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points, by x.
    pub points: Vec<Point>,
}

/// A value with its error bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where on the x axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Half the height of the error bar; 0 for none.
    pub error: f64,
}

impl Figure {
    /// As an SVG document.
    pub fn svg(&self) -> String {
        svg::document(&layout::scene(self))
    }

    /// As a PNG file of twice the size in pixels.
    pub fn png(&self) -> Vec<u8> {
        png::file(&layout::scene(self))
    }
}

/// A colour: red, green, blue.
type Colour = [u8; 3];

/// What is drawn, in drawing order, in units of a pixel of the SVG.
#[derive(Debug, Clone, Default)]
struct Scene {
    width: f64,
    height: f64,
    title: String,
    shapes: Vec<Shape>,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Left, top, width, height.
    Rectangle { at: [f64; 4], fill: Colour },
    /// From and to.
    Line {
        from: [f64; 2],
        to: [f64; 2],
        width: f64,
        colour: Colour,
        dashed: bool,
    },
    Dot {
        centre: [f64; 2],
        radius: f64,
        fill: Colour,
    },
    Text {
        /// Of the base line: its start, middle or end, as the anchor says.
        at: [f64; 2],
        size: f64,
        anchor: Anchor,
        /// Turned to run upwards.
        upwards: bool,
        text: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{Figure, Plot, Point, Series};

    fn figure(plot: Plot) -> Figure {
        let series = |label: &str, scale: f64| Series {
            label: label.to_owned(),
            points: (0..3)
                .map(|x| Point {
                    x: f64::from(x),
                    y: scale * f64::from(x + 1),
                    error: 0.5,
                })
                .collect(),
        };
        Figure {
            name: "made-up".to_owned(),
            title: "Gain <by> order & load".to_owned(),
            x_label: "load (%)".to_owned(),
            y_label: "gain (points)".to_owned(),
            plot,
            series: vec![series("EDF", 2.0), series("BJF", -1.0)],
        }
    }

    fn bars() -> Figure {
        figure(Plot::Bars {
            groups: vec!["×1".to_owned(), "×1.25".to_owned(), "×1.5".to_owned()],
        })
    }

    #[test]
    fn an_svg_names_its_axes_series_and_groups_and_escapes_them() {
        for (figure, marks) in [(bars(), 3 * 2), (figure(Plot::Lines), 3 * 2)] {
            let svg = figure.svg();
            for text in [
                "load (%)",
                "gain (points)",
                "EDF",
                "BJF",
                "Gain &lt;by&gt; order &amp; load",
            ] {
                assert!(svg.contains(text), "{text} is missing");
            }
            let error_bars = svg.matches("stroke-width=\"1.2\"").count();
            assert!(error_bars >= marks, "{error_bars} lines of error bars");
        }
        assert!(bars().svg().contains(">×1.25</text>"));
    }

    #[test]
    fn a_png_is_a_valid_picture_with_ink_and_the_same_each_time() {
        let png = bars().png();
        assert_eq!(png, bars().png());
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (number(16), number(20));
        assert_eq!((width, height), (1_440, 880));
        // Each chunk's checksum holds, and the picture's rows are all there.
        let (mut at, mut packed) = (8, Vec::new());
        while at < png.len() {
            let length = number(at);
            let body = &png[at + 4..at + 8 + length];
            let mut checksum = flate2::Crc::new();
            checksum.update(body);
            assert_eq!(checksum.sum() as usize, number(at + 8 + length));
            if body.starts_with(b"IDAT") {
                packed.extend_from_slice(&body[4..]);
            }
            at += 12 + length;
        }
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..])
            .read_to_end(&mut rows)
            .unwrap();
        assert_eq!(rows.len(), height * (1 + 3 * width));
        let inked = rows.iter().filter(|byte| **byte != 255).count();
        assert!(inked > 20_000, "only {inked} bytes differ from white paper");
    }

    #[test]
    fn a_figure_without_points_is_still_a_figure() {
        let mut empty = figure(Plot::Lines);
        empty.series.clear();
        assert!(empty.svg().ends_with("</svg>\n"));
        assert!(!empty.png().is_empty());
    }
}
