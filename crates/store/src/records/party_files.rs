//! The files that parties have uploaded, where several processes with folders of their own serve on one database: each process
//! has a copy of all of them, and takes over what has changed.
//!
//! Every change of a file has a number. A change locks the one row with the last number until it is stored, so numbers are seen
//! in their order: a reader that has seen one has seen all before it. Of each file only its last change is kept, and a file that
//! was removed stays as a row without content.

use domain::clock::Micros;
use uuid::Uuid;

use crate::engine::transaction::Transaction;
use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// The bytes of a part of a file, except for its last part: a bound on memory, and few statements for a large file.
pub const FILE_PART_BYTES: usize = 256 << 10;
/// Changes that are read at a time.
const CHANGES_READ: u32 = 100;
/// Removed files of a party that are remembered: as many as it may have.
const REMOVED_KEPT: u32 = 1_000;

/// The last change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartyFile {
    /// The number of the change: the store gives it.
    pub number: i64,
    /// The digest of the party's name.
    pub owner: String,
    /// The name of the file.
    pub name: String,
    /// The id of its content; none where it was removed.
    pub content: Option<Uuid>,
    /// Its length.
    pub bytes: i64,
    /// The SHA-256 of its content, in lower-case hexadecimal.
    pub sha256: String,
    /// When it was written.
    pub written: Micros,
}

/// How far the changes of files have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartyFileChanges {
    /// The id of these numbers: those of another database have another one.
    pub origin: Uuid,
    /// The number of the last change.
    pub last: i64,
    /// The last number among the removals that are not remembered any more. A folder that has not seen this change is compared
    /// with all that is there.
    pub forgotten: i64,
}

/// A file on its way into the database. Dropped before its end it leaves nothing behind.
pub struct IncomingPartyFile {
    transaction: Transaction,
    content: Uuid,
    parts: i64,
}

/// How far the changes of files have come.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn party_file_changes(store: &Store) -> Result<PartyFileChanges> {
    store
        .write(statements::BEGIN_PARTY_FILES, &[Uuid::now_v7().into()])
        .await?;
    let found = store.read_one(statements::PARTY_FILE_CHANGES, &[], PartyFileChanges::of);
    // It was made above, and is never removed.
    Ok(found.await?.unwrap_or(PartyFileChanges {
        origin: Uuid::nil(),
        last: 0,
        forgotten: 0,
    }))
}

/// The first changes after one, in their order; nothing where there are none.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn party_files_after(store: &Store, number: i64) -> Result<Vec<PartyFile>> {
    let values = [number.into(), CHANGES_READ.into()];
    store
        .read(statements::PARTY_FILES_AFTER, &values, PartyFile::of)
        .await
}

/// The files of an owner, with those that were removed.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn party_files_of(store: &Store, owner: &str) -> Result<Vec<PartyFile>> {
    store
        .read(statements::PARTY_FILES_OF, &[owner.into()], PartyFile::of)
        .await
}

/// A part of a content, counted from 0; none after its end, and where the content is not kept any more.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn party_file_part(store: &Store, content: Uuid, number: i64) -> Result<Option<Vec<u8>>> {
    let values = [content.into(), number.into()];
    store
        .read_one(statements::PARTY_FILE_PART, &values, |row| row.bytes("bytes"))
        .await
}

/// Begins to store a content under this id.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn begin_party_file(store: &Store, content: Uuid) -> Result<IncomingPartyFile> {
    Ok(IncomingPartyFile {
        transaction: store.begin().await?,
        content,
        parts: 0,
    })
}

/// Removes a file; answers whether there was one.
///
/// # Errors
/// `Error::Unavailable`, also where it is not known whether it was removed; `Error::Corrupt`.
pub async fn remove_party_file(store: &Store, owner: &str, name: &str) -> Result<bool> {
    let mut transaction = store.begin().await?;
    let number = next_party_file_change(&mut transaction).await?;
    let removed = PartyFile {
        number,
        owner: owner.to_owned(),
        name: name.to_owned(),
        content: None,
        bytes: 0,
        sha256: String::new(),
        written: 0,
    };
    let before = last_change_of_party_file(&mut transaction, &removed).await?;
    let Some(content) = before.and_then(|file| file.content) else {
        transaction.rollback().await?;
        return Ok(false);
    };
    put_party_file(&mut transaction, &removed, Some(content)).await?;
    forget_removed_party_files(&mut transaction, owner).await?;
    transaction.commit().await?;
    Ok(true)
}

impl IncomingPartyFile {
    /// Adds a part of [`FILE_PART_BYTES`], or the last one.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn add(&mut self, part: &[u8]) -> Result<()> {
        let values = [self.content.into(), self.parts.into(), part.into()];
        self.transaction
            .execute(statements::PUT_PARTY_FILE_PART, &values)
            .await?;
        self.parts += 1;
        Ok(())
    }

    /// Ends the content of a file, which replaces one of the same name; answers whether there was one. Number and content of
    /// the file are set here.
    ///
    /// # Errors
    /// `Error::Unavailable`, also where it is not known whether it was stored; `Error::Corrupt`.
    pub async fn finish(self, file: PartyFile) -> Result<bool> {
        let (mut transaction, file, before) = self.numbered(file).await?;
        let replaced = before.and_then(|file| file.content);
        put_party_file(&mut transaction, &file, replaced).await?;
        transaction.commit().await?;
        Ok(replaced.is_some())
    }

    /// Ends the content of a file that the database has never had; answers whether it was stored.
    ///
    /// # Errors
    /// The errors of [`IncomingPartyFile::finish`].
    pub async fn finish_unknown(self, file: PartyFile) -> Result<bool> {
        let (mut transaction, file, before) = self.numbered(file).await?;
        if before.is_some() {
            transaction.rollback().await?;
            return Ok(false);
        }
        put_party_file(&mut transaction, &file, None).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Takes the next number, and reads the last change of the file.
    async fn numbered(mut self, file: PartyFile) -> Result<(Transaction, PartyFile, Option<PartyFile>)> {
        let file = PartyFile {
            number: next_party_file_change(&mut self.transaction).await?,
            content: Some(self.content),
            ..file
        };
        let before = last_change_of_party_file(&mut self.transaction, &file).await?;
        Ok((self.transaction, file, before))
    }
}

impl std::fmt::Debug for IncomingPartyFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingPartyFile")
            .field("content", &self.content)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

/// The number of this transaction's change: other changes wait until it ends.
async fn next_party_file_change(transaction: &mut Transaction) -> Result<i64> {
    transaction
        .execute(statements::BEGIN_PARTY_FILES, &[Uuid::now_v7().into()])
        .await?;
    let next = transaction.read(statements::NEXT_PARTY_FILE_CHANGE, &[], |row| {
        row.integer("last_number")
    });
    Ok(next.await?.pop().unwrap_or_default())
}

/// The last change of a file of this owner and name.
async fn last_change_of_party_file(
    transaction: &mut Transaction,
    file: &PartyFile,
) -> Result<Option<PartyFile>> {
    let values = [(&file.owner).into(), (&file.name).into()];
    let found = transaction.read(statements::PARTY_FILE, &values, PartyFile::of);
    Ok(found.await?.pop())
}

/// Stores a change, without the content before it.
async fn put_party_file(
    transaction: &mut Transaction,
    file: &PartyFile,
    replaced: Option<Uuid>,
) -> Result<()> {
    if let Some(content) = replaced {
        transaction
            .execute(statements::FORGET_PARTY_FILE_PARTS, &[content.into()])
            .await?;
    }
    transaction
        .execute(statements::PUT_PARTY_FILE, &file.values())
        .await?;
    Ok(())
}

/// Forgets the oldest removals of an owner that has many.
async fn forget_removed_party_files(transaction: &mut Transaction, owner: &str) -> Result<()> {
    let values = [owner.into(), REMOVED_KEPT.into()];
    let forgotten = transaction.read(statements::FORGET_REMOVED_PARTY_FILES, &values, |row| {
        row.integer("change_number")
    });
    if let Some(last) = forgotten.await?.into_iter().max() {
        transaction
            .execute(statements::PARTY_FILES_FORGOTTEN, &[last.into()])
            .await?;
    }
    Ok(())
}

record! { PartyFile: number "change_number", owner, name, content, bytes, sha256, written "written_us" }
record! { PartyFileChanges: origin, last "last_number", forgotten "forgotten_number" }
