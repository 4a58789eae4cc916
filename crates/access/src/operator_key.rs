//! The first operator key: made at the first start, kept in a file of the data folder that holds nothing else.
//!
//! A key that is found in the file works only if it is stored: a job that can write the file gains nothing. A new key is first written
//! to a draft beside the file, complete on disk, then stored, and then the draft gets the name of the file. A crash in between leaves a
//! draft: if its key is stored, the next start goes on with it. So a start never ends without a usable key in the file.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Access, Error, KeyLimits, KeyWish, OPERATOR_PARTY, Role, Secret};

/// Name of the file in the data folder.
pub const OPERATOR_KEY_FILE: &str = "operator.key";
const LABEL: &str = "made at start";

/// The operator key of the data folder.
#[derive(Debug)]
pub struct OperatorKey {
    /// The text that its owner sends.
    pub secret: Secret,
    /// The file that holds it.
    pub path: PathBuf,
    /// Whether it was made just now, and is to be shown.
    pub is_new: bool,
}

/// Sees to it that the data folder has a file with an operator key that works: the one that is there, else a new
/// one. A key that was revoked or has expired is replaced, never revived.
///
/// # Errors
/// [`Error::File`], and those of the store.
pub async fn ensure_operator_key(access: &Access, data_dir: &Path) -> Result<OperatorKey, Error> {
    let path = data_dir.join(OPERATOR_KEY_FILE);
    let failed = |source| Error::File {
        path: path.display().to_string(),
        source,
    };
    if let Some(secret) = read_operator_key(&path).map_err(failed)?
        && is_operators_key(access, &secret).await?
    {
        return Ok(OperatorKey {
            secret,
            path,
            is_new: false,
        });
    }
    let draft = path.with_extension("key.new");
    let secret = match read_operator_key(&draft).map_err(failed)? {
        // It was stored before a crash.
        Some(secret) if is_operators_key(access, &secret).await? => secret,
        _ => {
            let secret = Secret::key()?;
            write_operator_key(data_dir, &draft, &secret).map_err(failed)?;
            let wish = KeyWish {
                party: OPERATOR_PARTY.to_owned(),
                role: Role::Operator,
                label: Some(LABEL.to_owned()),
                expires: None,
                limits: KeyLimits::default(),
            };
            access.store_key(&secret, wish, None).await?;
            secret
        }
    };
    put_operator_key(data_dir, &draft, &path).map_err(failed)?;
    Ok(OperatorKey {
        secret,
        path,
        is_new: true,
    })
}

/// Whether a key is stored, valid, and an operator's.
async fn is_operators_key(access: &Access, secret: &Secret) -> Result<bool, Error> {
    let caller = access.authenticate(secret.expose()).await?;
    Ok(caller.is_some_and(|caller| caller.role == Role::Operator))
}

/// The key in the file, where there is one; the file is made private again if it is not.
fn read_operator_key(path: &Path) -> io::Result<Option<Secret>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(Secret::parse_key(text.trim()))
}

/// Writes the key to a draft, private and lasting.
fn write_operator_key(folder: &Path, draft: &Path, secret: &Secret) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(draft)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(secret.expose().as_bytes())?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

/// Gives the draft the name of the file, lasting.
fn put_operator_key(folder: &Path, draft: &Path, path: &Path) -> io::Result<()> {
    fs::rename(draft, path)?;
    File::open(folder)?.sync_all()
}
