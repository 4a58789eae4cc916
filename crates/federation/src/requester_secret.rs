//! The secret by which the ids of requesters that peers are told stay the same and tell nothing else.

use std::path::Path;
use std::{fs, io};

use store::lasting_file::write_lasting_file;

/// Bytes of the secret.
const LENGTH: usize = 32;

/// The secret that is kept in a file; a new one, kept there from now on, where there is none.
///
/// # Errors
/// Where the file cannot be read or written.
pub fn ensure_requester_secret(file: &Path) -> io::Result<Vec<u8>> {
    match fs::read(file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        known => return known,
    }
    let mut secret = vec![0; LENGTH];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    write_lasting_file(file, &secret, 0o600)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let first = ensure_requester_secret(&file).unwrap();
        assert_eq!(first.len(), LENGTH);
        assert_eq!(ensure_requester_secret(&file).unwrap(), first);
    }
}
