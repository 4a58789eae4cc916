//! Letters as strokes, so that a picture needs no font.
//!
//! Each glyph is a list of polylines, separated by spaces; a point is two digits, x and y, on a grid where capitals reach
//! from y = 0 to the base line at 6, small letters from 2, and tails to 8. A point repeated is a dot.

/// Height of a capital on the grid.
pub(super) const CAPITAL: f64 = 6.0;

/// Space between letters on the grid.
pub(super) const GAP: f64 = 1.7;

/// What is drawn for a character that has no glyph: a box.
const UNKNOWN: (&str, f64) = ("0040460600", 4.0);

/// The strokes of a character, and its width on the grid.
pub(super) fn glyph(character: char) -> (&'static str, f64) {
    let strokes = match character {
        ' ' => return ("", 2.0),
        '0' | 'O' => "103041453616050110",
        '1' => "122026 1636",
        '2' => "01103041420646",
        '3' => "01103041423323 334445361605",
        '4' => "36300444",
        '5' => "400002324345361605",
        '6' => "413010010516364544331304",
        '7' => "004016",
        '8' => "13020110304142331304051636454433",
        '9' => "423313020110304145361605",
        'A' => "062046 1434",
        'B' => "00063645443303 3342413000",
        'C' => "4130100105163645",
        'D' => "00062644422000",
        'E' => "40000646 0333",
        'F' => "400006 0333",
        'G' => "41301001051636454323",
        'H' => "0006 4046 0343",
        'J' => "3035261605",
        'K' => "0006 4004 1346",
        'L' => "000646",
        'M' => "0600234046",
        'N' => "06004640",
        'P' => "06003041423303",
        'Q' => "103041453616050110 2547",
        'R' => "06003041423303 2346",
        'S' => "413010010213334445361605",
        'T' => "0040 2026",
        'U' => "000516364540",
        'V' => "002640",
        'W' => "0016233640",
        'X' => "0046 4006",
        'Y' => "002340 2326",
        'Z' => "00400646",
        'a' => "0312324346 441405163645",
        'b' => "0006 0312324345361605",
        'c' => "4332120305163645",
        'd' => "4046 4332120305163645",
        'e' => "04444332120305163645",
        'g' => "4332120305163645 4247381807",
        'h' => "0006 0312324346",
        'k' => "0006 4205 1446",
        'n' => "0206 0312324346",
        'o' => "123243453616050312",
        'p' => "0208 0312324345361605",
        'q' => "4248 4332120305163645",
        's' => "43321203143445361605",
        'u' => "0205163645 4246",
        'v' => "022642",
        'w' => "0216233642",
        'x' | '×' => "0246 4206",
        'y' => "0226 4218",
        'z' => "02420646",
        '-' => "1333",
        '–' | '−' => "0343",
        '+' => "2125 0343",
        '=' => "0242 0444",
        '±' => "2024 0242 0646",
        '≤' => "410345 0747",
        '<' => "410345",
        '>' => "014305",
        'φ' => "123243453616050312 2028",
        'ρ' => "0308 0312324345361605",
        'f' => return ("30201116 0232", 3.0),
        'r' => return ("0206 031232", 3.0),
        't' => return ("10152636 0232", 3.0),
        'j' => return ("22271808 2020", 3.0),
        '(' => return ("20111526", 3.0),
        ')' => return ("10212516", 3.0),
        '/' => return ("3006", 3.0),
        'I' | 'l' => return ("1016", 2.0),
        'i' => return ("1216 1010", 2.0),
        '.' => return ("1616", 2.0),
        ',' => return ("1608", 2.0),
        ':' => return ("1313 1616", 2.0),
        '·' => return ("1313", 2.0),
        '\'' | '’' => return ("1012", 2.0),
        'm' => return ("0206 0312223336 3342525366", 6.0),
        '%' => return ("6006 1021120110 5465564554", 6.0),
        _ => return UNKNOWN,
    };
    (strokes, 4.0)
}

/// Width of a text on the grid.
pub(super) fn width(text: &str) -> f64 {
    let letters: f64 = text.chars().map(|character| glyph(character).1 + GAP).sum();
    (letters - GAP).max(0.0)
}

/// The polylines of a text that starts at (0, base line), with y downwards from the top of capitals.
pub(super) fn polylines(text: &str) -> Vec<Vec<[f64; 2]>> {
    let mut lines = Vec::new();
    let mut left = 0.0;
    for character in text.chars() {
        let (strokes, width) = glyph(character);
        for stroke in strokes.split_ascii_whitespace() {
            let points = stroke.as_bytes().chunks_exact(2);
            lines.push(
                points
                    .map(|point| [left + f64::from(point[0] - b'0'), f64::from(point[1] - b'0')])
                    .collect(),
            );
        }
        left += width + GAP;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{UNKNOWN, glyph};

    #[test]
    fn every_glyph_is_points_within_its_width() {
        let known = (' '..='~')
            .chain("×±≤φρ–−·’".chars())
            .filter(|c| glyph(*c) != UNKNOWN);
        let mut count = 0;
        for character in known {
            let (strokes, width) = glyph(character);
            count += 1;
            for stroke in strokes.split(' ').filter(|stroke| !stroke.is_empty()) {
                assert!(
                    stroke.len() >= 4 && stroke.len().is_multiple_of(2),
                    "{character:?}: {stroke}"
                );
                let fits = |p: &[u8]| f64::from(p[0] - b'0') <= width && (b'0'..=b'8').contains(&p[1]);
                assert!(stroke.as_bytes().chunks(2).all(fits), "{character:?}: {stroke}");
            }
        }
        assert!(count > 75, "{count} glyphs");
    }

    #[test]
    fn letters_and_digits_all_have_glyphs_of_their_own() {
        let all = ('0'..='9').chain('A'..='Z').chain('a'..='z');
        for character in all {
            assert_ne!(glyph(character), UNKNOWN, "{character:?}");
        }
    }
}
