//! Characters, names and references of XML 1.0 (fifth edition), sections 2.2, 2.3 and 4.1.

use std::borrow::Cow;

/// The character of `&name;`, if it is allowed.
pub(crate) fn referred_character(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "apos" => return Some('\''),
        "quot" => return Some('"'),
        _ => name.strip_prefix('#')?,
    };
    let code = match number.strip_prefix('x') {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(hex, 16).ok()?,
        None if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok()?,
        _ => return None,
    };
    char::from_u32(code).filter(|c| is_xml_character(*c))
}

/// An attribute value as XML 1.0 says in section 3.3.3: references resolved, and white space as spaces. The guard has found it valid.
pub(super) fn normalise_attribute_value(value: &str) -> Cow<'_, str> {
    if !value.contains(['&', '\t', '\n', '\r']) {
        return Cow::Borrowed(value);
    }
    let spaced = value.replace("\r\n", " ").replace(['\t', '\n', '\r'], " ");
    let mut pieces = spaced.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once(';').unwrap_or((piece, ""));
        plain.extend(referred_character(name));
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}

/// Char of XML 1.0.
pub(crate) fn is_xml_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// `NameStartChar` of XML 1.0, without the colon.
pub(crate) fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

/// `NameChar` of XML 1.0, without the colon.
pub(crate) fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Bytes at which text and attribute values need a closer look: markup, quotes, the end of `]]>`, control
/// characters, and the lead byte of U+FFFE and U+FFFF.
pub(super) const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = !matches!(byte, 0x09 | 0x0A | 0x0D);
        byte += 1;
    }
    table[b'<' as usize] = true;
    table[b'&' as usize] = true;
    table[b']' as usize] = true;
    table[b'"' as usize] = true;
    table[b'\'' as usize] = true;
    table[0xEF] = true;
    table
};

/// ASCII bytes of qualified names.
pub(super) const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        byte += 1;
    }
    table
};
