//! The stager, which moves the files of jobs: each order is a task, within a number of them for all and for each party.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use address::address_without_query;
use domain::agreement::{MovedFiles, Run};
use domain::clock::{Clock, Micros};
use scheduler::counted;
use task::lock::{lock, read, write};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::ExecutionError;
use crate::files::job_folders::JobFolders;
use crate::job::folder::Folder;
use crate::job::folder::outputs::{OutputFile, Stream};
use crate::job::staging_record::{DirectionRecord, Fate, StagingDirection, StagingRecord, Verdict};
use crate::staging::transfer::{self, TransferRules};
use crate::staging::transfer_log::{TransferLog, Trouble};

/// Orders that are carried out at the same time: each has a connection and a file open.
const AT_ONCE_MAX: usize = 64;
/// The orders of one party among them, so that one with slow ends keeps no other waiting.
const OF_EACH_MAX: usize = 16;
/// How often a file is tried to be moved of which nothing more comes.
const TRIES_MAX: u32 = 5;
/// The wait before the second try, and the longest; it doubles in between.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));
/// How long to wait where this machine is short of something.
const SHORT_PAUSE: Duration = Duration::from_secs(1);
/// How often the clock is looked at: it may be stepped, and the slot made longer or shorter.
const TICK: Duration = Duration::from_millis(200);

/// Files to be moved for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) run: Run,
    pub(crate) party: String,
    pub(crate) way: StagingDirection,
    /// Their names in the job's folder, and their addresses.
    pub(crate) files: Vec<(String, String)>,
    /// When its slot ends.
    pub(crate) until: Micros,
    /// Whether its slot leaves time for it.
    pub(crate) had_time: bool,
}

/// How an order stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderState {
    /// The files are being moved.
    Underway {
        /// Since when.
        since: Micros,
    },
    /// That is over: how it ended, since when they were moved, and the moved ones.
    Over(Verdict, Micros, MovedFiles),
}

/// Moves files. Clones share what is under way.
#[derive(Debug, Clone)]
pub struct Stager(Arc<StagerState>, OnCluster);

/// Whether it moves the files of jobs on a cluster.
type OnCluster = bool;

#[derive(Debug)]
struct StagerState {
    line: RwLock<Arc<TransferRules>>,
    folders: JobFolders,
    clock: Clock,
    places: Arc<Semaphore>,
    of_each: Mutex<HashMap<String, Arc<Semaphore>>>,
    tasks: Mutex<HashMap<(Run, StagingDirection), Task>>,
}

#[derive(Debug)]
struct Task {
    since: Micros,
    until: Arc<AtomicI64>,
    handle: JoinHandle<()>,
}

impl Stager {
    /// A stager for the jobs in these folders.
    pub fn new(rules: TransferRules, folders: JobFolders, clock: Clock) -> Self {
        let shared = StagerState {
            line: RwLock::new(Arc::new(rules)),
            folders,
            clock,
            places: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            of_each: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self(Arc::new(shared), false)
    }

    /// Takes other rules. Transfers that run keep the rules with which they began.
    pub fn take_over(&self, rules: TransferRules) {
        *write(&self.0.line) = Arc::new(rules);
    }

    /// This stager for the jobs of a cluster, or of no cluster.
    pub(crate) fn on_cluster(&self, is_cluster: OnCluster) -> Self {
        Self(Arc::clone(&self.0), is_cluster)
    }

    /// How an order stands; it is carried out from then on, until its slot ends.
    ///
    /// # Errors
    /// When that cannot be read or written down at the moment.
    pub(crate) async fn follow(&self, order: Order) -> Result<OrderState, ExecutionError> {
        let key = (order.run, order.way);
        {
            let mut tasks = lock(&self.0.tasks);
            if let Some(task) = tasks.get(&key).filter(|task| !task.handle.is_finished()) {
                task.until.store(order.until, Ordering::Relaxed);
                return Ok(OrderState::Underway { since: task.since });
            }
            tasks.remove(&key);
        }
        let now = self.0.clock.micros();
        let (folder, asked) = (self.folder(order.run), order.clone());
        let record = with_stager_off_async_threads(move || {
            let record = folder.staging()?;
            let mut record = record.unwrap_or_else(|| StagingRecord::of(&asked.party));
            if OrderState::of(record.way(asked.way), asked.run).is_none() {
                let names: Vec<&str> = asked.files.iter().map(|(name, _)| name.as_str()).collect();
                record.way_mut(asked.way).begin(asked.run, &names, now);
                folder.put_staging(&record)?;
            }
            Ok(record)
        });
        let record = record.await?;
        if let Some(standing) = OrderState::of(record.way(order.way), order.run) {
            return Ok(standing);
        }
        let since = record.way(order.way).began;
        let until = Arc::new(AtomicI64::new(order.until));
        let books = TransferLog::of(self.folder(order.run), order.way, record);
        let mut tasks = lock(&self.0.tasks);
        // Its lane asks about an agreement once at a time.
        tasks.entry(key).or_insert_with(|| Task {
            since,
            until: Arc::clone(&until),
            handle: task::spawn(Arc::clone(&self.0).carry_out(order, books, until)),
        });
        Ok(OrderState::Underway { since })
    }

    /// How the order of a run stood when it was last followed, where it was.
    ///
    /// # Errors
    /// When that cannot be read at the moment.
    pub(crate) async fn seen(
        &self,
        run: Run,
        way: StagingDirection,
    ) -> Result<Option<OrderState>, ExecutionError> {
        let record = self.record(run).await?;
        Ok(record.and_then(|record| OrderState::of(record.way(way), run)))
    }

    /// How far the files of a run's work have come; none where none have been moved.
    ///
    /// # Errors
    /// When that cannot be read at the moment.
    pub(crate) async fn record(&self, run: Run) -> Result<Option<StagingRecord>, ExecutionError> {
        let folder = self.folder(run);
        with_stager_off_async_threads(move || folder.staging()).await
    }

    /// Removes files from the working folder of a run.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) async fn remove_files(&self, run: Run, names: Vec<String>) -> Result<(), ExecutionError> {
        let folder = self.folder(run);
        with_stager_off_async_threads(move || folder.remove_files(names.iter().map(String::as_str))).await
    }

    /// Gives an order up, and removes what has been brought of it.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) async fn give_up(&self, run: Run, way: StagingDirection) -> Result<(), ExecutionError> {
        let task = lock(&self.0.tasks).remove(&(run, way));
        if let Some(task) = task {
            task.handle.abort();
            // It is over when it is not there any more.
            let _ = task.handle.await;
        }
        let folder = self.folder(run);
        match way {
            StagingDirection::In => with_stager_off_async_threads(move || folder.remove_parts()).await,
            StagingDirection::Out => Ok(()),
        }
    }

    /// The folder with the records of all slots and attempts of a run's work.
    fn folder(&self, run: Run) -> Folder {
        let folders = &self.0.folders;
        let place = if self.1 {
            folders.place_on_cluster(run.agreement)
        } else {
            folders.path()
        };
        Folder::of(place, Run::first(run.agreement))
    }
}

impl OrderState {
    /// How the files of a run stand that nothing moves at the moment; none while they are not all moved.
    fn of(direction: &DirectionRecord, run: Run) -> Option<Self> {
        let verdict = direction.verdict.clone().filter(|_| direction.run == Some(run))?;
        Some(Self::Over(verdict, direction.began, direction.moved()))
    }
}

impl StagerState {
    fn line(&self) -> Arc<TransferRules> {
        Arc::clone(&read(&self.line))
    }

    /// Moves the files of an order and writes down what became of them.
    async fn carry_out(self: Arc<Self>, order: Order, mut books: TransferLog, until: Arc<AtomicI64>) {
        let mut waits = true;
        let fate = tokio::select! {
            fate = self.move_all(&order, &mut books, &mut waits) => Some(fate),
            () = self.wait_for_slot_end(&until) => None,
        };
        let verdict = Verdict {
            at: self.clock.micros(),
            fate: fate.unwrap_or_else(|| fate_of_late_stager_order(&order, &mut books, waits)),
        };
        info!(run = %order.run, ?verdict, "files moved");
        if matches!(verdict.fate, Fate::Failed { .. } | Fate::NoRoom) && order.way == StagingDirection::In {
            let folder = books.folder().clone();
            if let Err(error) = with_stager_off_async_threads(move || folder.remove_parts()).await {
                warn!(run = %order.run, %error, "what was brought is not removed");
            }
        }
        books.direction().verdict = Some(verdict);
        while let Err(trouble) = books.keep().await {
            warn!(run = %order.run, ?trouble, "what became of the files is not written down yet");
            tokio::time::sleep(SHORT_PAUSE).await;
        }
    }

    /// Waits for the end of the slot.
    async fn wait_for_slot_end(&self, until: &AtomicI64) {
        while self.clock.micros() < until.load(Ordering::Relaxed) {
            tokio::time::sleep(TICK).await;
        }
    }

    /// Moves one file after the other. Says when it no longer waits for others.
    async fn move_all(&self, order: &Order, books: &mut TransferLog, waits: &mut bool) -> Fate {
        let own = self.places_of(&order.party);
        // Neither is ever closed.
        let _places = (
            own.acquire_owned().await,
            Arc::clone(&self.places).acquire_owned().await,
        );
        *waits = false;
        for (at, (name, address)) in order.files.iter().enumerate() {
            if let Err(fate) = self.move_one(order.way, books, at, address).await {
                return match fate {
                    Fate::Failed { why } => Fate::Failed {
                        why: format!("{name}, {}: {why}", stager_order_in_words(order.way, address)),
                    },
                    other => other,
                };
            }
        }
        Fate::Arrived
    }

    /// Moves a file, in as many tries as it takes while more of it comes.
    async fn move_one(
        &self,
        way: StagingDirection,
        books: &mut TransferLog,
        at: usize,
        address: &str,
    ) -> Result<(), Fate> {
        let (mut tries, mut wait) = (0, RETRY.0);
        while !books.file(at).done {
            if way == StagingDirection::In && self.folders.excess(books.party()).is_some() {
                return Err(Fate::NoRoom);
            }
            let before = books.file(at).bytes;
            let moved = match way {
                StagingDirection::In => transfer::transfer_file_here(books, at, address, &self.line()).await,
                StagingDirection::Out => self.send(books, at, address).await,
            };
            if books.file(at).bytes > before {
                (tries, wait) = (0, RETRY.0);
            }
            match moved {
                Ok(()) => {}
                Err(Trouble::Theirs(why)) => return Err(Fate::Failed { why }),
                Err(Trouble::Passing(why)) => {
                    tries += 1;
                    if tries == TRIES_MAX {
                        let why = format!("{why}, and {} tries before no better", TRIES_MAX - 1);
                        return Err(Fate::Failed { why });
                    }
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY.1);
                }
                Err(Trouble::Ours(why)) => {
                    if !std::mem::replace(&mut books.direction().held_up, true) {
                        warn!(folder = %books.folder().path().display(), why, "files are held up");
                    }
                    tokio::time::sleep(SHORT_PAUSE).await;
                }
            }
        }
        Ok(())
    }

    /// Sends a file that the job has left.
    async fn send(&self, books: &mut TransferLog, at: usize, address: &str) -> Result<(), Trouble> {
        let (folder, name) = (books.folder().clone(), books.file(at).name.clone());
        let open = move || {
            let stream = Stream::from_word(&name);
            let file = folder.open_output(&stream.map_or(OutputFile::File(name), OutputFile::Stream))?;
            Ok((file, folder.is_incomplete()))
        };
        let theirs = |why: &str| Trouble::Theirs(why.to_owned());
        let file = match with_stager_off_async_threads(open).await {
            Ok((Some(file), _)) => file,
            Ok((None, true)) => return Err(Trouble::Ours("not all files came back from the cluster".into())),
            Ok((None, false)) => return Err(theirs("the job has left no such file")),
            Err(error) if error.is_shortage() => return Err(Trouble::Ours(error.to_string())),
            Err(_) => return Err(theirs("what the job has left there is no file")),
        };
        let length = file
            .metadata()
            .map_err(|why| Trouble::Ours(why.to_string()))?
            .len();
        let file = (tokio::fs::File::from_std(file), length);
        transfer::transfer_file_there(books, at, file, address, &self.line()).await
    }

    /// The places of a party. Those that no order has are forgotten.
    fn places_of(&self, party: &str) -> Arc<Semaphore> {
        let mut parties = lock(&self.of_each);
        parties.retain(|_, places| Arc::strong_count(places) > 1);
        let places = parties.entry(party.to_owned());
        Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(OF_EACH_MAX))))
    }
}

/// What became of files that had not all arrived when their slot was over.
fn fate_of_late_stager_order(order: &Order, books: &mut TransferLog, waits: bool) -> Fate {
    let direction = books.direction();
    if direction.held_up || waits && order.had_time {
        return Fate::Late;
    }
    let left = direction
        .files
        .iter()
        .zip(&order.files)
        .find(|(file, _)| !file.done);
    let why = left.map_or_else(String::new, |(file, (name, address))| {
        let bytes = match file.of {
            None => counted(file.bytes, "byte"),
            Some(length) => format!("{} of {}", file.bytes, counted(length, "byte")),
        };
        format!(
            "the slot was over when {bytes} of {name} had been moved, {}",
            stager_order_in_words(order.way, address)
        )
    });
    Fate::Failed { why }
}

/// Which way a file goes, in words.
fn stager_order_in_words(way: StagingDirection, address: &str) -> String {
    let word = match way {
        StagingDirection::In => "from",
        StagingDirection::Out => "to",
    };
    format!("{word} {}", address_without_query(address))
}

/// Works on files off the async threads.
async fn with_stager_off_async_threads<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecutionError> + Send + 'static,
) -> Result<T, ExecutionError> {
    let done = task::spawn_blocking(work).await;
    done.unwrap_or_else(|why| {
        Err(ExecutionError::system("move", PathBuf::new())(
            std::io::Error::other(why),
        ))
    })
}
