//! A scene as an SVG document.

use std::fmt::Write as _;

use super::{Anchor, Colour, Scene, Shape};

/// The document.
pub(super) fn document(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" role=\"img\">\n\
         <title>{}</title>\n",
        escaped(&scene.title)
    );
    for shape in &scene.shapes {
        // Writing to a string does not fail.
        let _ = match shape {
            Shape::Rectangle {
                at: [x, y, w, h],
                fill,
            } => writeln!(
                text,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\" fill=\"{}\"/>",
                hex(*fill)
            ),
            Shape::Line {
                from: [x1, y1],
                to: [x2, y2],
                width,
                colour,
                dashed,
            } => writeln!(
                text,
                "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"{}\" \
                 stroke-width=\"{width}\"{}/>",
                hex(*colour),
                if *dashed { " stroke-dasharray=\"7 4\"" } else { "" }
            ),
            Shape::Dot {
                centre: [x, y],
                radius,
                fill,
            } => writeln!(
                text,
                "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius}\" fill=\"{}\"/>",
                hex(*fill)
            ),
            Shape::Text {
                at: [x, y],
                size,
                anchor,
                upwards,
                text: words,
            } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let turned = if *upwards {
                    format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"")
                } else {
                    String::new()
                };
                writeln!(
                    text,
                    "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
                     fill=\"#222222\"{turned}>{}</text>",
                    escaped(words)
                )
            }
        };
    }
    text + "</svg>\n"
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
