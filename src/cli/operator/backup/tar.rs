//! Archives as `tar` writes and reads them: files, folders and links, with long names as GNU tar has them.

use std::io::{self, Read, Write};

/// Everything in an archive begins at a multiple of this.
const BLOCK: usize = 512;
/// The longest name or target of a link: more than as many folders as are archived make of the longest names.
const NAME_MAX: u64 = 32 << 10;
/// The longest name in a header.
const SHORT_NAME: usize = 100;
/// The largest number that octal digits have room for.
const OCTAL_MAX: u64 = 0o777_7777_7777;
const LONG_NAME: u8 = b'L';
const LONG_TARGET: u8 = b'K';

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// So many bytes follow.
    File(u64),
    Folder,
    /// To this target.
    Link(Vec<u8>),
}

/// One name in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Without a separator at either end.
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    /// Permissions.
    pub(super) mode: u32,
    /// When its content was changed, in seconds since 1970.
    pub(super) modified: i64,
}

/// Writes the header of an entry. The bytes of a file follow, and then [`write_padding`].
///
/// # Errors
/// The errors of writing.
pub(super) fn write_entry(to: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let (kind, size, target) = match &entry.kind {
        Kind::File(size) => (b'0', *size, &[][..]),
        Kind::Folder => (b'5', 0, &[][..]),
        Kind::Link(target) => (b'2', 0, target.as_slice()),
    };
    for (long, text) in [(LONG_NAME, entry.path.as_slice()), (LONG_TARGET, target)] {
        if text.len() > SHORT_NAME {
            let size = text.len() as u64 + 1;
            to.write_all(&header(b"././@LongLink", long, size, b"", 0, 0))?;
            to.write_all(text)?;
            to.write_all(&[0])?;
            write_padding(to, size)?;
        }
    }
    let modified = u64::try_from(entry.modified).unwrap_or(0);
    to.write_all(&header(&entry.path, kind, size, target, entry.mode, modified))
}

/// Writes the zero bytes between a file and the next entry.
///
/// # Errors
/// The errors of writing.
pub(super) fn write_padding(to: &mut impl Write, size: u64) -> io::Result<()> {
    to.write_all(&[0; BLOCK][..padding(size)])
}

/// Writes the end of an archive.
///
/// # Errors
/// The errors of writing.
pub(super) fn write_end(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[0; 2 * BLOCK])
}

fn padding(size: u64) -> usize {
    // Below the size of a block.
    usize::try_from(size.next_multiple_of(BLOCK as u64) - size).unwrap_or(0)
}

fn header(path: &[u8], kind: u8, size: u64, target: &[u8], mode: u32, modified: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &path[..path.len().min(SHORT_NAME)]);
    put(100, format!("{:07o}", mode & 0o7777).as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    if size > OCTAL_MAX {
        // In base 256, as GNU tar has it.
        put(124, &[0x80]);
        put(128, &size.to_be_bytes());
    } else {
        put(124, format!("{size:011o}").as_bytes());
    }
    put(136, format!("{:011o}", modified.min(OCTAL_MAX)).as_bytes());
    put(156, &[kind]);
    put(157, &target[..target.len().min(SHORT_NAME)]);
    put(257, b"ustar  ");
    let sum = format!("{:06o}\0 ", sum_of(&block));
    block[148..156].copy_from_slice(sum.as_bytes());
    block
}

/// The sum of a header's bytes, where the sum itself counts as spaces.
fn sum_of(block: &[u8; BLOCK]) -> u64 {
    let bytes = block.iter().enumerate();
    bytes
        .map(|(at, byte)| if (148..156).contains(&at) { b' ' } else { *byte })
        .map(u64::from)
        .sum()
}

/// Reads an archive, entry by entry.
pub(super) struct Reader<R> {
    from: R,
    /// Bytes of the last entry that have not been read, and what follows them.
    left: (u64, u64),
}

impl<R: Read> Reader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, left: (0, 0) }
    }

    /// The next entry; none at the end. Unread bytes of the last one are skipped.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] where this is no archive as [`write_entry`] writes it; those of reading.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        let (mut path, mut target) = (None, None);
        loop {
            let (data, padding) = self.left;
            let passed = io::copy(&mut (&mut self.from).take(data + padding), &mut io::sink())?;
            if passed < data + padding {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.left = (0, 0);
            let mut block = [0; BLOCK];
            self.from.read_exact(&mut block)?;
            if block == [0; BLOCK] {
                return Ok(None);
            }
            if number(&block[148..156]) != Some(sum_of(&block)) {
                return Err(damaged("a header is not what was written"));
            }
            let size = number(&block[124..136]).ok_or_else(|| damaged("a size is no number"))?;
            let kind = block[156];
            if kind == LONG_NAME || kind == LONG_TARGET {
                let text = Some(self.long_text(size)?);
                *(if kind == LONG_NAME { &mut path } else { &mut target }) = text;
                continue;
            }
            let kind = match (kind, size) {
                (b'0', size) if i64::try_from(size).is_ok() => Kind::File(size),
                (b'5', 0) => Kind::Folder,
                (b'2', 0) => Kind::Link(target.unwrap_or_else(|| text_in(&block[157..257]))),
                _ => return Err(damaged("an entry is of a kind that no backup has")),
            };
            if let Kind::File(size) = kind {
                self.left = (size, padding_of(size));
            }
            return Ok(Some(Entry {
                path: path.unwrap_or_else(|| text_in(&block[..SHORT_NAME])),
                kind,
                mode: u32::try_from(number(&block[100..108]).unwrap_or(0) & 0o777).unwrap_or(0),
                modified: i64::try_from(number(&block[136..148]).unwrap_or(0)).unwrap_or(0),
            }));
        }
    }

    /// Copies the bytes of the file whose entry was read last.
    ///
    /// # Errors
    /// The errors of reading and writing, and where the archive is cut off.
    pub(super) fn copy_to(&mut self, to: &mut impl Write) -> io::Result<()> {
        let copied = io::copy(&mut (&mut self.from).take(self.left.0), to)?;
        if copied < self.left.0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left.0 = 0;
        Ok(())
    }

    fn long_text(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > NAME_MAX {
            return Err(damaged("a name is longer than any"));
        }
        let mut text = Vec::new();
        self.left = (size, padding_of(size));
        self.copy_to(&mut text)?;
        Ok(text_in(&text))
    }
}

fn padding_of(size: u64) -> u64 {
    padding(size) as u64
}

/// The text before the first NUL.
fn text_in(field: &[u8]) -> Vec<u8> {
    field.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// A number in a header.
fn number(field: &[u8]) -> Option<u64> {
    if let [0x80, rest @ ..] = field {
        let (zeros, digits) = rest.split_last_chunk::<8>()?;
        return zeros
            .iter()
            .all(|byte| *byte == 0)
            .then(|| u64::from_be_bytes(*digits));
    }
    let mut digits = field.iter().filter(|byte| !matches!(byte, 0 | b' '));
    digits.try_fold(0_u64, |sum, digit| match digit {
        b'0'..=b'7' => sum.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: Kind) -> Entry {
        Entry {
            path: path.into(),
            kind,
            mode: 0o640,
            modified: 1_700_000_000,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let long = "deep/".repeat(60) + "file";
        let entries = [
            (entry("jobs", Kind::Folder), &b""[..]),
            (entry("jobs/a", Kind::File(3)), b"abc"),
            (entry(&long, Kind::File(512)), &[7; 512]),
            (entry("empty", Kind::File(0)), b""),
            (entry("link", Kind::Link(long.clone().into())), b""),
        ];
        let mut archive = Vec::new();
        for (entry, bytes) in &entries {
            write_entry(&mut archive, entry).unwrap();
            archive.extend_from_slice(bytes);
            write_padding(&mut archive, bytes.len() as u64).unwrap();
        }
        write_end(&mut archive).unwrap();
        let mut reader = Reader::new(archive.as_slice());
        for (expected, bytes) in &entries {
            assert_eq!(reader.next().unwrap().as_ref(), Some(expected));
            let mut read = Vec::new();
            reader.copy_to(&mut read).unwrap();
            assert_eq!(read, *bytes);
        }
        assert_eq!(reader.next().unwrap(), None);
        // Cut off anywhere, it is known as such.
        for end in [0, 100, BLOCK, 2 * BLOCK, archive.len() - 2 * BLOCK] {
            let mut reader = Reader::new(&archive[..end]);
            let end = loop {
                match reader.next() {
                    Ok(Some(_)) => {}
                    end => break end,
                }
            };
            assert!(end.is_err());
        }
    }

    #[test]
    fn sizes_beyond_octal_digits_are_read_back_and_absurd_ones_are_refused() {
        let mut archive = Vec::new();
        write_entry(&mut archive, &entry("huge", Kind::File(1 << 40))).unwrap();
        let read = Reader::new(archive.as_slice()).next().unwrap();
        assert_eq!(read.unwrap().kind, Kind::File(1 << 40));
        for (kind, size) in [(b'0', u64::MAX), (LONG_NAME, 1 << 40), (b'3', 0)] {
            let block = header(b"x", kind, size, b"", 0o600, 0);
            assert!(Reader::new(&block[..]).next().is_err(), "{kind} {size}");
        }
    }
}
