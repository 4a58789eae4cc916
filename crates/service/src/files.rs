//! Files: the input files that a party uploads for its jobs, and the files that a job has written.

use std::fs::File;
use std::io::Read;

use domain::agreement::{Agreement, Run};
use domain::catalogue::is_file_name;
use execution::files::job_folders::Removal;
use execution::files::{FileEntry, inputs};
use execution::job::folder::Folder;
use execution::job::folder::outputs::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{agreements, at_peer};
use uuid::Uuid;

use crate::agreements::find::find_agreement;
use crate::error::{error_of_peer, error_of_replica};
use crate::replicas::replica_behind;
use crate::views::money_and_time::instant_as_date_time;
use crate::views::schemas;
use crate::{Error, Result, Scope, Service};
use federation::client::{Peer, PeerFile};

/// A list of files.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesView {
    /// The files, by name.
    pub files: Vec<FileView>,
    /// Bytes that the files may have together; none where that is not bounded for them alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 1_073_741_824)]
    pub quota_bytes: Option<u64>,
}

/// A file.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct FileView {
    /// The name.
    #[schemars(example = &"input.csv")]
    pub name: String,
    /// The size, in bytes.
    #[schemars(example = 4_096)]
    pub bytes: u64,
    /// When it was last written.
    #[schemars(with = "schemas::Instant")]
    pub modified: String,
}

/// An upload under way: dropped before its end it leaves nothing behind.
#[derive(Debug)]
pub struct FileUpload(inputs::Upload);

/// The most names of input files in a list: more do not help in a choice.
const INPUT_FILES_SHOWN_MAX: usize = 500;

/// The most bytes that one read returns.
const PAGE_MAX: u64 = 1 << 20;

/// A file, a page at a time: the whole of it may be larger than many readers at once leave memory for.
#[derive(Debug)]
pub struct Output(Content);

/// Where the rest of a file comes from.
#[derive(Debug)]
enum Content {
    /// Nothing is left.
    Over,
    /// A file of this machine.
    File(File),
    /// A peer.
    Peer(PeerFile),
    /// The replica that has run the job.
    Replica(reqwest::Response),
}

impl Output {
    /// The content of a file.
    pub(super) fn of(file: Option<File>) -> Self {
        Self(file.map_or(Content::Over, Content::File))
    }

    /// The next page; empty where nothing more has been written.
    ///
    /// # Errors
    /// [`Error::Internal`] when the system refuses.
    pub async fn page(&mut self) -> Result<Vec<u8>> {
        let mut file = match std::mem::replace(&mut self.0, Content::Over) {
            Content::Over => return Ok(Vec::new()),
            Content::File(file) => file,
            Content::Peer(mut file) => {
                let part = file.next().await.map_err(|why| error_of_peer(&why))?;
                return Ok(part.map_or_else(Vec::new, |part| {
                    self.0 = Content::Peer(file);
                    part.to_vec()
                }));
            }
            Content::Replica(mut file) => {
                let part = file.chunk().await;
                let part = part.map_err(|why| Error::Internal(why.to_string()))?;
                return Ok(part.map_or_else(Vec::new, |part| {
                    self.0 = Content::Replica(file);
                    part.to_vec()
                }));
            }
        };
        let (file, page) = with_files_off_async_threads(move || {
            let mut page = Vec::new();
            file.by_ref().take(PAGE_MAX).read_to_end(&mut page)?;
            Ok((file, page))
        })
        .await?;
        self.0 = Content::File(file);
        Ok(page)
    }
}

impl FileView {
    fn of(file: FileEntry) -> Self {
        Self {
            name: file.name,
            bytes: file.bytes,
            modified: instant_as_date_time(file.modified),
        }
    }
}

impl FileUpload {
    /// Writes more of the file.
    ///
    /// # Errors
    /// [`Error::QuotaExceeded`], [`Error::Short`], [`Error::Internal`] when the system refuses.
    pub async fn write(mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> Result<Self> {
        with_files_off_async_threads(move || {
            self.0.write(bytes.as_ref())?;
            Ok(self)
        })
        .await
    }

    /// Puts the file in its place, durably; answers whether it replaced one.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Short`], [`Error::Internal`] when the system refuses.
    pub async fn finish(self) -> Result<bool> {
        Ok(self.0.finish().await?)
    }
}

/// The party's own files.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Internal`] when the system refuses.
pub async fn list_files(service: &Service, party: &str) -> Result<FilesView> {
    service.files.catch_up().await?;
    let (files, party) = (service.files.clone(), party.to_owned());
    let quota = files.quota();
    let own = with_files_off_async_threads(move || Ok(files.own(&party)?)).await?;
    Ok(FilesView {
        files: own.into_iter().map(FileView::of).collect(),
        quota_bytes: Some(quota),
    })
}

/// The names of files that a party's offers may use, in order, for a choice: the first [`INPUT_FILES_SHOWN_MAX`] found, and none
/// where the folders cannot be read. An offer may name any file that is there.
pub async fn list_input_files(service: &Service, party: &str) -> Vec<String> {
    let (files, party) = (service.files.clone(), party.to_owned());
    // The choice has those that are here, where others cannot be had.
    let _ = files.catch_up().await;
    let names = task::spawn_blocking(move || files.names(&party, INPUT_FILES_SHOWN_MAX));
    names.await.unwrap_or_default()
}

/// Begins to upload a file, which jobs of the party may then name; it replaces one of the same name when it is whole.
///
/// # Errors
/// [`Error::BadName`], [`Error::QuotaExceeded`], [`Error::Unavailable`], [`Error::Short`], [`Error::Internal`].
pub async fn upload_file(service: &Service, party: &str, name: &str) -> Result<FileUpload> {
    if !is_file_name(name) {
        return Err(Error::BadName);
    }
    service.files.catch_up().await?;
    let (files, party, name) = (service.files.clone(), party.to_owned(), name.to_owned());
    with_files_off_async_threads(move || Ok(FileUpload(files.upload(&party, &name)?))).await
}

/// The content of one of the party's own files.
///
/// # Errors
/// [`Error::NotFound`] where it has none of this name, [`Error::Unavailable`].
pub async fn open_file(service: &Service, party: &str, name: &str) -> Result<Output> {
    service.files.catch_up().await?;
    let (files, party, name) = (service.files.clone(), party.to_owned(), name.to_owned());
    let file = with_files_off_async_threads(move || {
        Ok(files.find_own(&party, &name).map(File::open).transpose()?)
    });
    Ok(Output::of(Some(file.await?.ok_or(Error::NotFound)?)))
}

/// Removes one of the party's own files. Jobs that have begun keep it.
///
/// # Errors
/// [`Error::NotFound`] where it has none of this name, [`Error::Conflict`] where one of its agreements has yet to run on it,
/// [`Error::Unavailable`], [`Error::Internal`].
pub async fn remove_file(service: &Service, party: &str, name: &str) -> Result<()> {
    if let Some(agreement) = agreement_needing_file(service, party, name).await? {
        return Err(Error::Conflict(format!(
            "the job of agreement {agreement} has yet to read {name}"
        )));
    }
    if service.files.remove(party, name).await? {
        Ok(())
    } else {
        Err(Error::NotFound)
    }
}

/// An agreement of the party with a job that names a file and has not started.
async fn agreement_needing_file(service: &Service, party: &str, name: &str) -> Result<Option<Uuid>> {
    let waiting = agreements::agreements_to_start(&service.store, party).await?;
    let catalogue = service.catalogue();
    let names_it = |agreement: &&Agreement| {
        agreement.job.as_ref().is_some_and(|job| {
            let application = catalogue.find(&job.application, job.version.as_deref());
            application.is_some_and(|application| application.files(&job.arguments).contains(&name))
                || job.uploads().any(|upload| upload == name)
        })
    };
    Ok(waiting.iter().find(names_it).map(|agreement| agreement.id))
}

/// The files that an agreement's job has written by now: its two outputs, and the files of its working folder.
///
/// # Errors
/// [`Error::NotFound`] when there is no such agreement or it is another party's, [`Error::Unavailable`].
pub async fn list_outputs(service: &Service, scope: Scope, id: Uuid) -> Result<FilesView> {
    let agreement = find_agreement(service, &scope, id).await?;
    if let Some((peer, address)) = peer_with_output_files(service, &agreement).await? {
        let there = peer.outputs(&address).await.map_err(|why| error_of_peer(&why))?;
        let written = agreement.ended.unwrap_or_else(|| service.clock.micros());
        let view = |(name, bytes)| {
            FileView::of(FileEntry {
                name,
                bytes,
                modified: written,
            })
        };
        return Ok(FilesView {
            files: there.into_iter().map(view).collect(),
            quota_bytes: None,
        });
    }
    if let Some((replicas, there)) = replica_behind(service, &agreement.resource) {
        let files = replicas.outputs(&there, id).await;
        let files = files.map_err(|why| error_of_replica(&why))?;
        let files = serde_json::from_slice(&files);
        return files.map_err(|why| Error::Internal(format!("the replica {there}: {why}")));
    }
    let folder = service.jobs.place_of_run(Run::first(agreement.execution_id()))?;
    check_output_files_kept(&agreement, &folder)?;
    let written = with_files_off_async_threads(move || {
        let streams = Stream::ALL.into_iter();
        let mut all: Vec<_> = streams.filter_map(|stream| folder.output_entry(stream)).collect();
        all.extend(folder.output_files()?);
        Ok(all)
    });
    Ok(FilesView {
        files: written.await?.into_iter().map(FileView::of).collect(),
        quota_bytes: None,
    })
}

/// The output of an agreement's job, from its beginning: to `stdout`, to `stderr`, or to a file of its working
/// folder.
///
/// # Errors
/// [`Error::NotFound`] where there is no such output, [`Error::Unavailable`].
pub async fn open_output(service: &Service, scope: Scope, id: Uuid, name: &str) -> Result<Output> {
    let agreement = find_agreement(service, &scope, id).await?;
    if let Some((peer, address)) = peer_with_output_files(service, &agreement).await? {
        let file = peer
            .output(&address, name)
            .await
            .map_err(|why| error_of_peer(&why))?;
        return Ok(Output(Content::Peer(file)));
    }
    if let Some((replicas, there)) = replica_behind(service, &agreement.resource) {
        let file = replicas.output(&there, id, name).await;
        let file = file.map_err(|why| error_of_replica(&why))?;
        return Ok(Output(Content::Replica(file)));
    }
    let (folder, name) = (
        service.jobs.place_of_run(Run::first(agreement.execution_id()))?,
        name.to_owned(),
    );
    check_output_files_kept(&agreement, &folder)?;
    let file = with_files_off_async_threads(move || match folder.output_file(&name)? {
        None => Ok(None),
        Some(written) => Ok(Some(folder.open_output(&written)?)),
    });
    file.await?.map(Output::of).ok_or(Error::NotFound)
}

/// The peer that carries an agreement out or has, with the address of its agreement there; none where it is or was here.
async fn peer_with_output_files(service: &Service, agreement: &Agreement) -> Result<Option<(Peer, String)>> {
    let Some(federation) = &service.federation else {
        return Ok(None);
    };
    let Some(peer) = federation.peer(&agreement.resource) else {
        return Ok(None);
    };
    let rows = at_peer::at_peers_of_agreement(&service.store, agreement.id)
        .await?
        .into_iter();
    let mut there = rows.filter(|row| row.peer == agreement.resource);
    Ok(there.next_back().and_then(|row| Some((peer, row.address?))))
}

/// Removes everything that an agreement's job has left, before its time is over; nothing where it has left nothing.
///
/// # Errors
/// [`Error::NotFound`] when there is no such agreement or it is another party's, [`Error::Conflict`] while the agreement, or
/// the one that goes on with its work, is not over or its job not stopped, [`Error::Unavailable`], [`Error::Internal`].
pub async fn remove_outputs(service: &Service, scope: Scope, id: Uuid) -> Result<()> {
    let agreement = find_agreement(service, &scope, id).await?;
    if !agreement.state.is_final() {
        let state = agreement.state;
        return Err(Error::Conflict(format!(
            "the agreement is {state}: the files of its job can be removed when it is over"
        )));
    }
    let work = agreement.execution_id();
    if !agreements::is_work_of_agreement_over(&service.store, work).await? {
        return Err(Error::Conflict(
            "another agreement goes on with its work and its files".to_owned(),
        ));
    }
    if let Some((replicas, there)) = replica_behind(service, &agreement.resource) {
        let removed = replicas.remove_outputs(&there, id).await;
        return removed.map_err(|why| error_of_replica(&why));
    }
    let folders = service.jobs.clone();
    match with_files_off_async_threads(move || Ok(folders.remove_ended(work)?)).await? {
        Removal::Removed | Removal::NothingThere => Ok(()),
        Removal::Running => Err(Error::Conflict(
            "the job is still being stopped; try again in a moment".to_owned(),
        )),
    }
}

/// Makes sure that a job's files have not been removed at the end of their time.
///
/// # Errors
/// [`Error::Gone`] where it has been.
pub(super) fn check_output_files_kept(agreement: &Agreement, folder: &Folder) -> Result<()> {
    let ran = agreement.state.is_final() && agreement.job.is_some() && agreement.started.is_some();
    if ran && !folder.path().is_dir() {
        return Err(Error::Gone(
            "the files of the job are no longer kept: their time was over, or they were removed".to_owned(),
        ));
    }
    Ok(())
}

/// Works on files off the async threads.
pub(super) async fn with_files_off_async_threads<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = task::spawn_blocking(work).await;
    done.map_err(|why| Error::Internal(why.to_string()))?
}
