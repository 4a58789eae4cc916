//! Bytes as text in hexadecimal.

/// The bytes of a text in hexadecimal; none where it is none.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    digits.map(byte).collect()
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    // Each line of the audit trail has a hash: this is several times as fast as to format each byte.
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    text
}
