//! Signed heads of the audit trail. A user who can write the database can write its chain of hashes anew, since the formula is public. So
//! the service signs, at intervals, the number and the hash of the last line, with a key that the database does not have, and appends
//! the signature to a file, best on another machine's disk. A trail that was written anew does not have the lines that were signed.
//!
//! Nor has a database that was restored. The command that has restored it appends a line that says so, with a signature of the line
//! before. Lines behind that one that were signed earlier are gone rightly.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::clock::Micros;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, ED25519_PUBLIC_KEY_LEN, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::engine::{hex, unhex};
use super::lasting_file::write_lasting_file;

/// The beginning of the signed text, so that the signature is of nothing else.
const CONTEXT: &str = "bespeak audit trail head";
/// The beginning of the signed text of a restore.
const RESTORE_CONTEXT: &str = "bespeak restored to audit trail head";
/// The words before the signature in the line of a restore.
const SIGNED: &str = "; signed ";
/// The public key beside the private one, for checks of the signatures elsewhere.
const PUBLIC: &str = "pub";

/// The end of the audit trail at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the last line.
    pub number: i64,
    /// Its hash, in hexadecimal.
    pub hash: String,
    /// When it was signed, in microseconds since 1970.
    pub at: Micros,
}

/// A line of the file: a head and its signature (Ed25519, in hexadecimal).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SignedHead {
    #[serde(flatten)]
    head: Head,
    signature: String,
}

impl Head {
    /// The signed text.
    fn signed_text(&self) -> String {
        let Self { number, hash, at } = self;
        format!("{CONTEXT}\n{number}\n{hash}\n{at}\n")
    }
}

/// The private key that signs heads, kept in a file of its own.
pub struct HeadKey(Ed25519KeyPair);

impl HeadKey {
    /// The key in the file; a new one where there is none. Its public key is put beside it, in hexadecimal.
    ///
    /// # Errors
    /// Where the file cannot be read or written, or holds something else.
    pub fn ensure(path: &Path) -> io::Result<Self> {
        let key = if let Some(key) = Self::open(path)? {
            key
        } else {
            let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(io::Error::other)?;
            write_lasting_file(path, made.as_ref(), 0o600)?;
            Self::parse(made.as_ref())?
        };
        let public = path.with_extension(PUBLIC);
        if !public.exists() {
            write_lasting_file(&public, hex(key.0.public_key().as_ref()).as_bytes(), 0o644)?;
        }
        Ok(key)
    }

    /// The key in the file; none where there is no file.
    ///
    /// # Errors
    /// Where the file cannot be read, or holds something else.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(stored) => Self::parse(&stored).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(stored: &[u8]) -> io::Result<Self> {
        Ed25519KeyPair::from_pkcs8(stored)
            .map(Self)
            .map_err(io::Error::other)
    }

    fn sign(&self, head: Head) -> SignedHead {
        let signature = hex(self.0.sign(head.signed_text().as_bytes()).as_ref());
        SignedHead { head, signature }
    }
}

/// A restore, as its line in the audit trail tells of it.
pub struct SignedRestore<'k> {
    /// When it was made.
    pub at: Micros,
    /// Where it comes from, in words.
    pub words: String,
    /// The key of the trail; without one the line is not signed, and explains no signed head.
    pub key: Option<&'k HeadKey>,
}

impl SignedRestore<'_> {
    /// What the line says after the line with this number and hash, the last one that was restored.
    pub(crate) fn detail(&self, number: i64, hash: &str) -> String {
        let Self { at, words, key } = self;
        let mut detail = format!("to line {number}, {words}");
        if let Some(HeadKey(pair)) = key {
            detail += SIGNED;
            detail += &hex(pair.sign(restore_text(number, hash, *at).as_bytes()).as_ref());
        }
        detail
    }
}

/// The signed text of a restore to a line.
fn restore_text(number: i64, hash: &str, at: Micros) -> String {
    format!("{RESTORE_CONTEXT}\n{number}\n{hash}\n{at}\n")
}

/// The public key of the private one at this path.
///
/// # Errors
/// Where there is none, or it is none.
pub fn public_key_beside_head_key(path: &Path) -> io::Result<Vec<u8>> {
    let text = fs::read_to_string(path.with_extension(PUBLIC))?;
    parse_public_key(text.trim()).ok_or_else(|| io::Error::other("it is no key in hexadecimal"))
}

/// A public key in hexadecimal; none where the text is none.
pub fn parse_public_key(text: &str) -> Option<Vec<u8>> {
    unhex(text).filter(|key| key.len() == ED25519_PUBLIC_KEY_LEN)
}

/// The file of signed heads, a JSON object a line.
pub struct SignedHeads {
    path: PathBuf,
    key: HeadKey,
    /// The last line that was signed.
    last: i64,
    /// Whether the file is known to end with a whole line: then it need not be read.
    is_whole: bool,
}

impl SignedHeads {
    /// The file at a path; it is made with the first head.
    pub fn new(path: PathBuf, key: HeadKey) -> Self {
        Self {
            path,
            key,
            last: 0,
            is_whole: false,
        }
    }

    /// Signs a head and appends it, lasting, unless its line was the last one signed.
    ///
    /// # Errors
    /// Where the file cannot be written; a later head says all that this one says.
    pub fn append(&mut self, head: Head) -> io::Result<()> {
        if head.number <= self.last {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o644)
            .open(&self.path)?;
        // Half a line of a crash is no line.
        if !std::mem::take(&mut self.is_whole) {
            let whole = io::read_to_string(&file)?.rfind('\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
        }
        file.seek(SeekFrom::End(0))?;
        let number = head.number;
        let line = serde_json::to_string(&self.key.sign(head))?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()?;
        (self.last, self.is_whole) = (number, true);
        Ok(())
    }
}

/// The lines of the audit trail that are known to have been stored, by their numbers: those that were signed, and the last one that the
/// service was told of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedLines {
    /// Several of a number where the database was restored in between.
    lines: BTreeMap<i64, Vec<KnownLine>>,
    /// The public key of the signatures; empty where nothing is signed.
    key: Vec<u8>,
}

/// A line that is known to have been stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownLine {
    pub(crate) head: Head,
    pub(crate) is_signed: bool,
}

impl SignedLines {
    /// Adds a line that is known without a signature.
    pub fn add_known(&mut self, head: Head) {
        self.add(head, false);
    }

    fn add(&mut self, head: Head, is_signed: bool) {
        let lines = self.lines.entry(head.number).or_default();
        lines.push(KnownLine { head, is_signed });
    }

    /// Whether no line is known.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All lines, by their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &KnownLine> {
        self.lines.values().flatten()
    }

    /// The lines with a number, which are left out from then on.
    pub(crate) fn take(&mut self, number: i64) -> Vec<KnownLine> {
        self.lines.remove(&number).unwrap_or_default()
    }

    /// Whether a line with this detail tells of a restore to the line with this number and hash. It is signed, where anything is.
    pub(crate) fn is_restore(&self, (number, hash): (i64, &str), at: Micros, detail: &str) -> bool {
        if self.key.is_empty() {
            return true;
        }
        let signature = detail
            .rsplit_once(SIGNED)
            .and_then(|(_, signature)| unhex(signature));
        let key = UnparsedPublicKey::new(&ED25519, &self.key);
        let text = restore_text(number, hash, at);
        signature.is_some_and(|signature| key.verify(text.as_bytes(), &signature).is_ok())
    }
}

/// Reads a file of heads and checks their signatures with the public key. Returns the signed lines, and what is wrong with the file, a
/// sentence each. Half a line at the end is left out: the service may be writing it.
///
/// # Errors
/// Where the file cannot be read.
pub fn read_signed_heads(path: &Path, public: &[u8]) -> io::Result<(SignedLines, Vec<String>)> {
    let text = fs::read_to_string(path)?;
    let mut lines = SignedLines {
        key: public.to_vec(),
        ..SignedLines::default()
    };
    let mut wrong = Vec::new();
    for (place, line) in whole_lines(&text).lines().enumerate() {
        match signed_head(line, public) {
            Some(head) => lines.add(head, true),
            None => wrong.push(format!(
                "line {} of {} is not signed with the trail's key",
                place + 1,
                path.display()
            )),
        }
    }
    Ok((lines, wrong))
}

/// The last head of a file that is signed with the key; none where there is no file, or no such head at its end. Reads the end of the file
/// only: it may be years long.
///
/// # Errors
/// Where the file cannot be read.
pub fn read_last_head(path: &Path, public: &[u8]) -> io::Result<SignedLines> {
    let mut lines = SignedLines {
        key: public.to_vec(),
        ..SignedLines::default()
    };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(lines),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    // The first line may be cut off, and is not signed then.
    let text = String::from_utf8_lossy(&end);
    let last = whole_lines(&text)
        .lines()
        .rev()
        .find_map(|line| signed_head(line, public));
    if let Some(head) = last {
        lines.add(head, true);
    }
    Ok(lines)
}

/// How much of the end of a file of heads is looked at for the last one.
const END_BYTES: u64 = 64 << 10;

/// A text without half a line at its end.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..end])
}

/// The head of a line, where it is signed with the key.
fn signed_head(line: &str, public: &[u8]) -> Option<Head> {
    let SignedHead { head, signature } = serde_json::from_str(line).ok()?;
    let key = UnparsedPublicKey::new(&ED25519, public);
    key.verify(head.signed_text().as_bytes(), &unhex(&signature)?)
        .ok()?;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: i64) -> Head {
        Head {
            number,
            hash: format!("hash {number}"),
            at: 1,
        }
    }

    fn numbers(lines: &SignedLines) -> Vec<i64> {
        lines.all().map(|line| line.head.number).collect()
    }

    #[test]
    fn only_a_restore_to_this_line_that_is_signed_with_the_key_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(HeadKey::open(&path("trail.key")).unwrap().is_none());
        HeadKey::ensure(&path("trail.key")).unwrap();
        let key = HeadKey::open(&path("trail.key")).unwrap().unwrap();
        let public = public_key_beside_head_key(&path("trail.key")).unwrap();
        let lines = read_last_head(&path("none"), &public).unwrap();
        let by = |key| SignedRestore {
            at: 5,
            words: "from a backup".to_owned(),
            key,
        };
        let signed = by(Some(&key)).detail(7, "hash 7");
        assert!(
            signed.starts_with("to line 7, from a backup; signed "),
            "{signed}"
        );
        assert!(lines.is_restore((7, "hash 7"), 5, &signed));
        for (before, at, detail) in [
            ((8, "hash 7"), 5, &signed),
            ((7, "hash 8"), 5, &signed),
            ((7, "hash 7"), 6, &signed),
            ((7, "hash 7"), 5, &by(None).detail(7, "hash 7")),
            (
                (7, "hash 7"),
                5,
                &by(Some(&HeadKey::ensure(&path("other")).unwrap())).detail(7, "hash 7"),
            ),
        ] {
            assert!(!lines.is_restore(before, at, detail), "{before:?} {at} {detail}");
        }
    }

    #[test]
    fn heads_are_appended_and_read_back_and_a_forged_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (key, path) = (
            folder.path().join("trail.key"),
            folder.path().join("elsewhere/heads"),
        );
        let mut heads = SignedHeads::new(path.clone(), HeadKey::ensure(&key).unwrap());
        for number in [1, 3, 3] {
            heads.append(head(number)).unwrap();
        }
        let public = public_key_beside_head_key(&key).unwrap();
        let (lines, wrong) = read_signed_heads(&path, &public).unwrap();
        assert_eq!((numbers(&lines), wrong.len()), (vec![1, 3], 0));
        // A crash has left half a line; the next start goes on with the same key.
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"number\":4,")).unwrap();
        assert_eq!(read_signed_heads(&path, &public).unwrap().1, [""; 0]);
        let mut heads = SignedHeads::new(path.clone(), HeadKey::ensure(&key).unwrap());
        heads.append(head(5)).unwrap();
        let (lines, wrong) = read_signed_heads(&path, &public).unwrap();
        assert_eq!((numbers(&lines), wrong.len()), (vec![1, 3, 5], 0));
        assert_eq!(numbers(&read_last_head(&path, &public).unwrap()), [5]);
        // A changed hash, and a head signed with another key.
        let changed = whole.replacen("hash 1", "hash 9", 1);
        fs::write(&path, &changed).unwrap();
        assert_eq!(read_signed_heads(&path, &public).unwrap().1.len(), 1);
        let other = HeadKey::ensure(&folder.path().join("other.key")).unwrap();
        SignedHeads::new(path.clone(), other).append(head(7)).unwrap();
        assert_eq!(read_signed_heads(&path, &public).unwrap().1.len(), 2);
    }
}
