//! Signed heads of the audit trail. A user who can write the database can write its chain of hashes anew, since the formula is public. So
//! the service signs, at intervals, the number and the hash of the last line, with a key that the database does not have, and appends
//! the signature to a file, best on another machine's disk. A trail that was written anew does not have the lines that were signed.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::SystemRandom;
use ring::signature::{ED25519, ED25519_PUBLIC_KEY_LEN, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::engine::{hex, unhex};
use crate::clock::Micros;

/// The beginning of the signed text, so that the signature is of nothing else.
const CONTEXT: &str = "bespeak audit trail head";
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
    fn text(&self) -> String {
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
        let stored = match fs::read(path) {
            Ok(stored) => stored,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(io::Error::other)?;
                write_lasting(path, made.as_ref(), 0o600)?;
                made.as_ref().to_vec()
            }
            Err(error) => return Err(error),
        };
        let pair = Ed25519KeyPair::from_pkcs8(&stored).map_err(io::Error::other)?;
        let public = path.with_extension(PUBLIC);
        if !public.exists() {
            write_lasting(&public, hex(pair.public_key().as_ref()).as_bytes(), 0o644)?;
        }
        Ok(Self(pair))
    }

    fn sign(&self, head: Head) -> SignedHead {
        let signature = hex(self.0.sign(head.text().as_bytes()).as_ref());
        SignedHead { head, signature }
    }
}

/// The public key of the private one at this path.
///
/// # Errors
/// Where there is none, or it is none.
pub fn public_key_beside(path: &Path) -> io::Result<Vec<u8>> {
    let text = fs::read_to_string(path.with_extension(PUBLIC))?;
    parse_public_key(text.trim()).ok_or_else(|| io::Error::other("it is no key in hexadecimal"))
}

/// A public key in hexadecimal; none where the text is none.
pub fn parse_public_key(text: &str) -> Option<Vec<u8>> {
    unhex(text).filter(|key| key.len() == ED25519_PUBLIC_KEY_LEN)
}

/// Writes a small file whole or not at all, lasting.
fn write_lasting(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(mode)
        .open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
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

/// The hashes of signed lines, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedLines(pub(in crate::store) BTreeMap<i64, String>);

/// Reads a file of heads and checks their signatures with the public key. Returns the signed lines, and what is wrong with the file, a
/// sentence each. Half a line at the end is left out: the service may be writing it.
///
/// # Errors
/// Where the file cannot be read.
pub fn read_signed_heads(path: &Path, public: &[u8]) -> io::Result<(SignedLines, Vec<String>)> {
    let key = UnparsedPublicKey::new(&ED25519, public);
    let text = fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let (mut lines, mut wrong) = (BTreeMap::new(), Vec::new());
    for (place, line) in whole.lines().enumerate() {
        let read = serde_json::from_str::<SignedHead>(line).ok();
        let signed = read.filter(|SignedHead { head, signature }| {
            unhex(signature).is_some_and(|signature| key.verify(head.text().as_bytes(), &signature).is_ok())
        });
        match signed {
            Some(SignedHead { head, .. }) => {
                if lines
                    .insert(head.number, head.hash.clone())
                    .is_some_and(|before| before != head.hash)
                {
                    wrong.push(format!(
                        "two heads of line {} are signed, with different hashes",
                        head.number
                    ));
                }
            }
            None => wrong.push(format!(
                "line {} of {} is not signed with the trail's key",
                place + 1,
                path.display()
            )),
        }
    }
    Ok((SignedLines(lines), wrong))
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
        let public = public_key_beside(&key).unwrap();
        let (lines, wrong) = read_signed_heads(&path, &public).unwrap();
        assert_eq!(
            (lines.0.keys().copied().collect::<Vec<_>>(), wrong.len()),
            (vec![1, 3], 0)
        );
        // A crash has left half a line; the next start goes on with the same key.
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"number\":4,")).unwrap();
        assert_eq!(read_signed_heads(&path, &public).unwrap().1, [""; 0]);
        let mut heads = SignedHeads::new(path.clone(), HeadKey::ensure(&key).unwrap());
        heads.append(head(5)).unwrap();
        let (lines, wrong) = read_signed_heads(&path, &public).unwrap();
        assert_eq!(
            (lines.0.keys().copied().collect::<Vec<_>>(), wrong.len()),
            (vec![1, 3, 5], 0)
        );
        // A changed hash, and a head signed with another key.
        let changed = whole.replacen("hash 1", "hash 9", 1);
        fs::write(&path, &changed).unwrap();
        assert_eq!(read_signed_heads(&path, &public).unwrap().1.len(), 1);
        let other = HeadKey::ensure(&folder.path().join("other.key")).unwrap();
        SignedHeads::new(path.clone(), other).append(head(7)).unwrap();
        assert_eq!(read_signed_heads(&path, &public).unwrap().1.len(), 2);
    }
}
