//! The streaming guard in front of every tree builder.
//!
//! Documents come from strangers. Pull readers accept many documents that XML 1.0 forbids, and tree builders can be
//! made to spend seconds on a few kilobytes. So this pass reads the bytes once, keeps a small bounded stack and builds
//! nothing. An accepted document is a well-formed, namespace-well-formed document without a DTD and without processing
//! instructions, of bounded size, depth and width. All later code may rely on that. The work is linear in the size of
//! the document, with a factor bounded by the limits below.

use std::borrow::Cow;

use thiserror::Error;

mod tags;

use crate::xml::names::{is_name_char, is_name_start};

/// Largest document, in bytes. A large offer with fifty terms is some 60 kB.
pub const BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of elements, the root being at depth one. The deepest message of the protocol needs fourteen.
pub const DEPTH_MAX: usize = 32;
/// Most elements in a document.
pub const ELEMENTS_MAX: usize = 2_000;
/// Most attributes of an element, namespace declarations not counted.
pub const ATTRIBUTES_MAX: usize = 64;
/// Most namespace declarations of an element.
pub const DECLARATIONS_MAX: usize = 16;
/// Most namespace declarations open at one place of the document; tree builders copy or search them per element.
pub const BINDINGS_MAX: usize = 64;

/// Longest name of an element or an attribute, its prefix included, in bytes. A fault of a document names all elements around its
/// place, and a document may have many faults.
pub const NAME_MAX: usize = 255;
/// Longest namespace name, in bytes: each fragment that is cut out of a document and kept by itself has a copy of it. The
/// longest one of the protocol has 60.
pub const NAMESPACE_MAX: usize = 255;

/// The reason why the guard refuses a document. A server gives a different answer for each variant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GuardError {
    /// Larger than [`BYTES_MAX`].
    #[error("the document has {bytes} bytes; at most {BYTES_MAX} are allowed")]
    TooLarge {
        /// Size of the document.
        bytes: usize,
    },
    /// Not UTF-8, or declared to be something else.
    #[error("line {line}, column {column}: {reason}; only UTF-8 is allowed")]
    Encoding {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The fault.
        reason: String,
    },
    /// Not well-formed, forbidden here, or beyond a limit.
    #[error("line {line}, column {column}: {reason}")]
    Refused {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The fault, with the limit where there is one.
        reason: String,
    },
}

/// Checks a document and gives its text without the byte order mark.
///
/// # Errors
/// The first reason for which the document is refused, with its place.
pub fn guard_document(bytes: &[u8]) -> Result<&str, GuardError> {
    if bytes.len() > BYTES_MAX {
        return Err(GuardError::TooLarge { bytes: bytes.len() });
    }
    let text = decode_utf8(bytes)?;
    let mut scanner = Scanner {
        text,
        at: 0,
        open: Vec::new(),
        bindings: Vec::new(),
        elements: 0,
    };
    let error = |refusal: Refusal| (refusal.error)(text, refusal.at, refusal.reason);
    scanner.document().map_err(error)?;
    Ok(text)
}

/// The refusal of a text that passed, and then turned out to be something else.
pub(crate) fn refusal_of_text(text: &str, at: usize, reason: String) -> GuardError {
    let (line, column) = line_and_column_for_guard(text, at);
    GuardError::Refused { line, column, reason }
}

/// The refusal of a text that is not UTF-8, or says so.
fn refusal_of_encoding(text: &str, at: usize, reason: String) -> GuardError {
    let (line, column) = line_and_column_for_guard(text, at);
    GuardError::Encoding { line, column, reason }
}

/// UTF-8 with or without a byte order mark; other byte order marks are named in the error.
fn decode_utf8(bytes: &[u8]) -> Result<&str, GuardError> {
    let found = match bytes {
        [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] | [0, b'<', ..] | [b'<', 0, ..] => "UTF-16 or UTF-32",
        [0x4C, 0x6F, 0xA7, 0x94, ..] => "EBCDIC",
        _ => "",
    };
    if !found.is_empty() {
        return Err(refusal_of_encoding("", 0, format!("the document is {found}")));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        // The prefix up to the error is valid UTF-8 by the error's own account.
        let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        refusal_of_encoding(valid, valid.len(), "a byte sequence that is not UTF-8".to_owned())
    })
}

/// Line and column, both from 1, of a byte offset.
fn line_and_column_for_guard(text: &str, at: usize) -> (usize, usize) {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// A refusal before its place is turned into line and column.
struct Refusal {
    at: usize,
    reason: String,
    error: fn(&str, usize, String) -> GuardError,
}

type GuardResult<T> = Result<T, Refusal>;

fn refuse<T>(at: usize, reason: impl Into<String>) -> GuardResult<T> {
    Err(Refusal {
        at,
        reason: reason.into(),
        error: refusal_of_text,
    })
}

/// An element that is still open.
struct Open<'a> {
    name: &'a str,
    at: usize,
    /// Length of the binding stack before this element's own declarations.
    bindings: usize,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open<'a>>,
    /// Prefix (empty for the default) and namespace name of every open declaration.
    bindings: Vec<(&'a str, Cow<'a, str>)>,
    elements: usize,
}

impl<'a> Scanner<'a> {
    fn document(&mut self) -> GuardResult<()> {
        self.declaration()?;
        loop {
            self.outside_text()?;
            if self.at == self.text.len() {
                if self.elements == 0 {
                    return refuse(self.at, "the document has no element; one root is expected");
                }
                return Ok(());
            }
            self.markup()?;
            while !self.open.is_empty() {
                self.character_data()?;
                if self.at == self.text.len() {
                    let open = &self.open[self.open.len() - 1];
                    let (line, _) = line_and_column_for_guard(self.text, open.at);
                    let reason = format!(
                        "the document ends before <{}> of line {line} is closed",
                        open.name
                    );
                    return refuse(self.at, reason);
                }
                self.markup()?;
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.at > start
    }

    /// Takes `literal` if it comes next.
    fn take(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    /// The XML declaration, which may stand only at the very start.
    fn declaration(&mut self) -> GuardResult<()> {
        const EXPECTED: &str = "the XML declaration may only be <?xml version=\"1.0\" encoding=\"UTF-8\"?>, with \
                                or without encoding and standalone";
        let rest = self.rest();
        if !(rest.starts_with("<?xml") && rest[5..].starts_with([' ', '\t', '\r', '\n'])) {
            return Ok(());
        }
        self.at += 5;
        let mut seen = 0;
        loop {
            let spaced = self.skip_space();
            if self.take("?>") {
                return if seen > 0 {
                    Ok(())
                } else {
                    refuse(self.at, EXPECTED)
                };
            }
            let start = self.at;
            let rest = self.rest();
            let key = rest
                .split(|c: char| !c.is_ascii_alphabetic())
                .next()
                .unwrap_or_default();
            self.at += key.len();
            self.skip_space();
            if !spaced || !self.take("=") {
                return refuse(start, EXPECTED);
            }
            self.skip_space();
            let quote = match self.peek() {
                Some(quote @ (b'"' | b'\'')) => char::from(quote),
                _ => return refuse(self.at, EXPECTED),
            };
            let value_at = self.at + 1;
            let Some(length) = self.text[value_at..].find(quote) else {
                return refuse(start, EXPECTED);
            };
            let value = &self.text[value_at..value_at + length];
            self.at = value_at + length + 1;
            let rank = match (key, value) {
                ("version", "1.0") => 1,
                ("encoding", value) if value.eq_ignore_ascii_case("utf-8") => 2,
                ("encoding", value) => {
                    return Err(Refusal {
                        at: start,
                        reason: format!("the document declares the encoding {value:?}"),
                        error: refusal_of_encoding,
                    });
                }
                ("standalone", "yes" | "no") => 3,
                _ => return refuse(start, EXPECTED),
            };
            // version, then encoding, then standalone; the first is required.
            if rank <= seen || (seen == 0 && rank != 1) {
                return refuse(start, EXPECTED);
            }
            seen = rank;
        }
    }

    /// Only white space may stand outside the root.
    fn outside_text(&mut self) -> GuardResult<()> {
        self.skip_space();
        match self.peek() {
            None | Some(b'<') => Ok(()),
            Some(_) => refuse(
                self.at,
                "text outside the root element; only white space is allowed there",
            ),
        }
    }

    /// Text inside an element, up to the next markup or the end of the document.
    fn character_data(&mut self) -> GuardResult<()> {
        loop {
            self.skip_plain();
            match self.peek() {
                None | Some(b'<') => return Ok(()),
                Some(b'&') => self.reference()?,
                Some(b']') if self.rest().starts_with("]]>") => {
                    return refuse(self.at, "]]> in text; write ]]&gt;");
                }
                Some(_) => self.character()?,
            }
        }
    }

    /// Skips bytes that need no look, in text and in attribute values alike.
    fn skip_plain(&mut self) {
        let bytes = &self.text.as_bytes()[self.at..];
        let plain = bytes.iter().position(|&b| SPECIAL[usize::from(b)]);
        self.at += plain.unwrap_or(bytes.len());
    }

    /// One character of the document, which XML must allow.
    fn character(&mut self) -> GuardResult<()> {
        match self.rest().chars().next() {
            Some(c) if is_xml_character(c) => {
                self.at += c.len_utf8();
                Ok(())
            }
            Some(c) => refuse(
                self.at,
                format!("the character U+{:04X}, which XML does not allow", u32::from(c)),
            ),
            None => refuse(self.at, "the document ends here"),
        }
    }

    /// `&…;`: one of the five entities, or a character reference to a character that XML allows.
    fn reference(&mut self) -> GuardResult<()> {
        let length = self.rest().bytes().take(12).position(|b| b == b';');
        let name = length.map(|length| &self.rest()[1..length]);
        if name.and_then(referred_character).is_none() {
            let reason = "an & that starts no allowed reference; only &amp; &lt; &gt; &apos; &quot; and references \
                          to characters that XML allows may be used";
            return refuse(self.at, reason);
        }
        self.at += length.unwrap_or_default() + 1;
        Ok(())
    }

    /// Anything that starts with `<`.
    fn markup(&mut self) -> GuardResult<()> {
        let start = self.at;
        match self.text.as_bytes().get(start + 1) {
            Some(b'/') => self.end_tag(),
            Some(b'?') => refuse(start, "a processing instruction; none are allowed"),
            Some(b'!') if self.take("<!--") => self.section(start, "a comment", "-->"),
            Some(b'!') if self.open.is_empty() && self.rest().starts_with("<![CDATA[") => {
                refuse(start, "a CDATA section outside the root element")
            }
            Some(b'!') if self.take("<![CDATA[") => self.section(start, "a CDATA section", "]]>"),
            Some(b'!') if self.rest().starts_with("<!DOCTYPE") => {
                refuse(start, "a document type declaration; none is allowed")
            }
            Some(b'!') => refuse(start, "<! that starts neither a comment nor a CDATA section"),
            _ => self.start_tag(),
        }
    }

    /// The rest of a comment or of a CDATA section, which `end` closes.
    fn section(&mut self, start: usize, what: &str, end: &str) -> GuardResult<()> {
        loop {
            let bytes = &self.text.as_bytes()[self.at..];
            let plain = bytes
                .iter()
                .position(|&b| b < 0x20 || matches!(b, b'-' | b']' | 0xEF));
            self.at += plain.unwrap_or(bytes.len());
            if self.at == self.text.len() {
                return refuse(start, format!("{what} that is not closed"));
            }
            if self.take(end) {
                return Ok(());
            }
            if end == "-->" && self.rest().starts_with("--") {
                return refuse(self.at, "-- in a comment, where it may only close it");
            }
            self.character()?;
        }
    }

    /// A qualified name: `local` or `prefix:local`.
    fn name(&mut self, what: &str) -> GuardResult<&'a str> {
        let start = self.at;
        let rest = self.rest();
        let ascii = rest
            .bytes()
            .position(|b| !NAME[usize::from(b)])
            .unwrap_or(rest.len());
        let end = if rest.as_bytes().get(ascii).is_some_and(|b| *b >= 0x80) {
            rest.find(|c| c != ':' && !is_name_char(c)).unwrap_or(rest.len())
        } else {
            ascii
        };
        let name = &rest[..end];
        let mut parts = name.split(':');
        let valid = parts.clone().count() <= 2 && parts.all(|part| part.starts_with(is_name_start));
        if !valid {
            return refuse(
                start,
                format!("{what} is expected here: a name, or a prefix, a colon and a name"),
            );
        }
        if name.len() > NAME_MAX {
            return refuse(start, format!("a name of more than {NAME_MAX} bytes"));
        }
        self.at += end;
        Ok(name)
    }
}

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

/// Char of XML 1.0.
pub(crate) fn is_xml_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Bytes at which text and attribute values need a closer look: markup, quotes, the end of `]]>`, control
/// characters, and the lead byte of U+FFFE and U+FFFF.
const SPECIAL: [bool; 256] = {
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
const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        byte += 1;
    }
    table
};
