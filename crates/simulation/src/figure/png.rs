//! A scene as a PNG file: every shape is a distance, and a pixel is inked by how far inside of the shape it lies.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::glyphs;
use super::{Anchor, Colour, Scene, Shape};

/// Pixels of a unit of the scene.
const SCALE: f64 = 2.0;

const INK: Colour = [34, 34, 34];

/// Lengths of a dash and of the space after it, in units of the scene.
const DASH: [f64; 2] = [7.0, 4.0];

/// No line of a figure has more dashes.
const DASHES_MAX: u32 = 1_000;

/// Height of capitals as a part of the size of a text, and the width of their strokes.
const CAPITAL: f64 = 0.7;
const STROKE: f64 = 0.09;

/// The file.
pub(super) fn file(scene: &Scene) -> Vec<u8> {
    let mut picture = Picture::new(scene.width * SCALE, scene.height * SCALE);
    for shape in &scene.shapes {
        picture.draw(shape);
    }
    picture.encoded()
}

struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

impl Picture {
    fn new(width: f64, height: f64) -> Self {
        let (width, height) = (index(width), index(height));
        Self {
            width,
            height,
            pixels: vec![[255; 3]; width * height],
        }
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rectangle { at, fill } => self.rectangle(*at, *fill),
            Shape::Line {
                from,
                to,
                width,
                colour,
                dashed,
            } => {
                for (from, to) in dashes(*from, *to, *dashed) {
                    self.segment(from, to, width / 2.0, *colour);
                }
            }
            Shape::Dot { centre, radius, fill } => self.segment(*centre, *centre, *radius, *fill),
            Shape::Text {
                at,
                size,
                anchor,
                upwards,
                text,
            } => self.text(*at, *size, *anchor, *upwards, text),
        }
    }

    fn text(&mut self, at: [f64; 2], size: f64, anchor: Anchor, upwards: bool, text: &str) {
        let unit = size * CAPITAL / glyphs::CAPITAL;
        let before = glyphs::width(text)
            * match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
        let place = |[x, y]: [f64; 2]| {
            let (along, down) = (unit * (x - before), unit * (y - glyphs::CAPITAL));
            if upwards {
                [at[0] + down, at[1] - along]
            } else {
                [at[0] + along, at[1] + down]
            }
        };
        for line in glyphs::polylines(text) {
            for pair in line.windows(2) {
                self.segment(place(pair[0]), place(pair[1]), size * STROKE / 2.0, INK);
            }
        }
    }

    fn rectangle(&mut self, [x, y, w, h]: [f64; 4], fill: Colour) {
        let [x, y, w, h] = [x * SCALE, y * SCALE, w * SCALE, h * SCALE];
        let covered = |from: f64, length: f64, pixel: f64| {
            ((from + length).min(pixel + 1.0) - from.max(pixel)).clamp(0.0, 1.0)
        };
        self.ink([x, y, x + w, y + h], fill, |px, py| {
            covered(x, w, px) * covered(y, h, py)
        });
    }

    /// A line with round ends.
    fn segment(&mut self, from: [f64; 2], to: [f64; 2], radius: f64, colour: Colour) {
        let [ax, ay] = from.map(|c| c * SCALE);
        let [bx, by] = to.map(|c| c * SCALE);
        let radius = radius * SCALE;
        let (dx, dy) = (bx - ax, by - ay);
        let square = dx * dx + dy * dy;
        let box_ = [
            ax.min(bx) - radius - 1.0,
            ay.min(by) - radius - 1.0,
            ax.max(bx) + radius + 1.0,
            ay.max(by) + radius + 1.0,
        ];
        self.ink(box_, colour, |px, py| {
            let (x, y) = (px + 0.5 - ax, py + 0.5 - ay);
            let along = if square > 0.0 {
                ((x * dx + y * dy) / square).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let distance = ((x - along * dx).powi(2) + (y - along * dy).powi(2)).sqrt();
            (radius + 0.5 - distance).clamp(0.0, 1.0)
        });
    }

    /// Mixes a colour into the pixels of a box, by how much of each is covered.
    fn ink(
        &mut self,
        [left, top, right, bottom]: [f64; 4],
        colour: Colour,
        covered: impl Fn(f64, f64) -> f64,
    ) {
        for row in index(top)..index(bottom.ceil()).min(self.height) {
            for column in index(left)..index(right.ceil()).min(self.width) {
                let part = covered(column as f64, row as f64);
                if part > 0.0 {
                    let pixel = &mut self.pixels[row * self.width + column];
                    for (old, new) in pixel.iter_mut().zip(colour) {
                        *old = byte(f64::from(*old) * (1.0 - part) + f64::from(new) * part);
                    }
                }
            }
        }
    }

    fn encoded(&self) -> Vec<u8> {
        let mut rows = Vec::with_capacity(self.height * (1 + 3 * self.width));
        for row in self.pixels.chunks(self.width.max(1)) {
            rows.push(0);
            rows.extend(row.iter().flatten());
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail.
        let packed = encoder
            .write_all(&rows)
            .and_then(|()| encoder.finish())
            .unwrap_or_default();
        let mut header = Vec::new();
        for length in [self.width, self.height] {
            header.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        }
        // Eight bits each of red, green and blue.
        header.extend([8, 2, 0, 0, 0]);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, body) in [(b"IHDR", &header[..]), (b"IDAT", &packed), (b"IEND", &[])] {
            file.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
            let mut checksum = flate2::Crc::new();
            checksum.update(kind);
            checksum.update(body);
            file.extend(kind);
            file.extend(body);
            file.extend(checksum.sum().to_be_bytes());
        }
        file
    }
}

/// The parts of a line that are drawn.
fn dashes(from: [f64; 2], to: [f64; 2], dashed: bool) -> Vec<([f64; 2], [f64; 2])> {
    let length = ((to[0] - from[0]).powi(2) + (to[1] - from[1]).powi(2)).sqrt();
    if !dashed || length == 0.0 {
        return vec![(from, to)];
    }
    let at = |distance: f64| {
        let part = (distance / length).min(1.0);
        [
            from[0] + part * (to[0] - from[0]),
            from[1] + part * (to[1] - from[1]),
        ]
    };
    (0..DASHES_MAX)
        .map(|dash| f64::from(dash) * (DASH[0] + DASH[1]))
        .take_while(|start| *start < length)
        .map(|start| (at(start), at(start + DASH[0])))
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a small picture; the cast saturates at 0"
)]
fn index(place: f64) -> usize {
    place as usize
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mixture of bytes is a byte"
)]
fn byte(value: f64) -> u8 {
    value.round() as u8
}
