//! Replicas: the processes that serve from one PostgreSQL. One leads, which plans and dispatches; the others stand by and pass on
//! to it what they cannot answer from the store. Each has a name, an address at which the others reach it, and a secret that it makes at
//! its start. The others know it by the digest of that secret in the store.

mod hosts;
mod leader_questions;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::{Certificate, Client, Method, RequestBuilder, Url};
use sha2::{Digest, Sha256};
use task::lock::lock;
use tokio::sync::watch;
use uuid::Uuid;

pub use hosts::{claim_resources, watch_hosts};
pub use leader_questions::{QUESTIONS, Reply, answer_questions};

use address::{client_to_anywhere, error_without_address};
use domain::clock::Clock;
use execution::hosts::Hosts;
use store::backup::SCHEMA_VERSION;
use store::replicas::{self, ReplicaRow};
use store::{Store, hex};

/// The header with the name of the replica that a request comes from.
pub const REPLICA: &str = "bespeak-replica";
/// The header with its secret.
pub const REPLICA_SECRET: &str = "bespeak-replica-secret";
/// The header with the address of the client that the passed request comes from.
pub const ORIGIN: &str = "bespeak-origin";

/// How long a connection to another replica may take: they are near each other.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// How long a replica may take for a question that it answers itself.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// For how long rows of the store are taken as they were.
const ROWS_KEPT: Duration = Duration::from_secs(5);
/// The same where a replica is looked for that is not among them.
const ROWS_KEPT_AT_LEAST: Duration = Duration::from_millis(500);
/// How long a client is used at least: making one reads all certificates of the system.
const CLIENT_KEPT_AT_LEAST: Duration = Duration::from_secs(2);
/// Characters in the name of a replica: PostgreSQL cuts names of sessions off.
pub const NAME_MAX: usize = 40;

/// Whether a text can be the name of a replica: it stands in names of sessions and in headers.
pub fn is_replica_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_plain)
}

/// The address of the process that leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Its name.
    pub name: String,
    /// Where it is reached.
    pub address: String,
}

/// How other replicas are reached over TLS.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Certificates to trust beside those of the system, in DER: the service's own.
    pub certificates: Vec<Vec<u8>>,
    /// The host that the certificates of all replicas name, where the configuration says one.
    pub host: Option<String>,
}

/// The replicas as one of them sees them. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Replicas(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: Arc<str>,
    address: String,
    secret: String,
    joined: i64,
    store: Store,
    trust: Trust,
    hosts: Hosts,
    /// By address, with the time at which each was made.
    clients: Mutex<HashMap<String, (Instant, Client)>>,
    rows: Mutex<Option<(Instant, Arc<[ReplicaRow]>)>>,
    leader: watch::Sender<Option<Leader>>,
    /// When the replicas were last heard that ask for the jobs of their machines.
    heard: Mutex<HeardReplicas>,
}

/// When the others were heard.
#[derive(Debug)]
struct HeardReplicas {
    /// Since when this process listens.
    since: Instant,
    last: HashMap<String, Instant>,
}

impl HeardReplicas {
    fn from_now() -> Self {
        Self {
            since: Instant::now(),
            last: HashMap::new(),
        }
    }
}

/// Why another replica has not answered a request as it should.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// It cannot be reached, or is none of those that are known.
    #[error("the replica {0} does not answer: {1}")]
    Silent(String, String),
    /// Its answer has this status, and this text.
    #[error("the replica {0} answers {1}: {2}")]
    Refused(String, u16, String),
}

impl Replicas {
    /// This process among the replicas of a store: its name, and where the others reach it.
    ///
    /// # Errors
    /// Where the system has no randomness.
    pub fn new(
        name: &str,
        address: String,
        store: Store,
        trust: Trust,
        clock: &Clock,
    ) -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self(Arc::new(Inner {
            name: name.into(),
            address,
            secret: hex(&secret),
            joined: clock.micros(),
            store,
            trust,
            hosts: Hosts::seen_by(name),
            clients: Mutex::default(),
            rows: Mutex::default(),
            leader: watch::channel(None).0,
            heard: Mutex::new(HeardReplicas::from_now()),
        })))
    }

    /// Makes this process known to the others.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn join(&self) -> Result<(), store::Error> {
        let row = ReplicaRow {
            name: self.0.name.to_string(),
            address: self.0.address.clone(),
            digest: hex(&Sha256::digest(&self.0.secret)),
            joined: self.0.joined,
            schema_version: i64::try_from(SCHEMA_VERSION).unwrap_or(i64::MAX),
        };
        replicas::put_replica(&self.0.store, &row).await
    }

    /// The name of this one.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The local resources of each.
    pub fn hosts(&self) -> &Hosts {
        &self.0.hosts
    }

    /// The one that leads, where that is another one and known.
    pub fn leader(&self) -> watch::Receiver<Option<Leader>> {
        self.0.leader.subscribe()
    }

    /// Takes note of the name of the one that leads; none where there is none, or this one does.
    ///
    /// # Errors
    /// Those of the store, from which its address is read.
    pub async fn note_leader(&self, name: Option<&str>) -> Result<(), store::Error> {
        let Some(name) = name.filter(|name| **name != *self.0.name) else {
            self.0.leader.send_if_modified(|leader| leader.take().is_some());
            return Ok(());
        };
        let row = self.row(name).await?;
        let leader = row.map(|row| Leader {
            name: row.name,
            address: row.address,
        });
        self.0.leader.send_if_modified(|before| {
            let changes = *before != leader;
            *before = leader;
            changes
        });
        Ok(())
    }

    async fn rows(&self) -> Result<Arc<[ReplicaRow]>, store::Error> {
        let known = lock(&self.0.rows).clone();
        if let Some((read, rows)) = known
            && read.elapsed() < ROWS_KEPT
        {
            return Ok(rows);
        }
        let rows: Arc<[ReplicaRow]> = replicas::all_replicas(&self.0.store).await?.into();
        let kept = Some((Instant::now(), Arc::clone(&rows)));
        *lock(&self.0.rows) = kept;
        Ok(rows)
    }

    async fn row(&self, name: &str) -> Result<Option<ReplicaRow>, store::Error> {
        let rows = self.rows().await?;
        Ok(rows.iter().find(|row| row.name == name).cloned())
    }

    /// Whether a request that says so comes from the replica of this name. One that was started again a moment ago has another secret.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn knows(&self, name: &str, secret: &str) -> Result<bool, store::Error> {
        let digest = hex(&Sha256::digest(secret));
        let is_known = |rows: &[ReplicaRow]| rows.iter().any(|row| row.name == name && row.digest == digest);
        if is_known(&self.rows().await?) {
            return Ok(true);
        }
        // Anybody can ask: the database is not asked each time.
        lock(&self.0.rows).take_if(|(read, _)| read.elapsed() > ROWS_KEPT_AT_LEAST);
        Ok(is_known(&self.rows().await?))
    }

    /// Takes note that a replica asks for the jobs of its machine.
    pub fn note_heard(&self, name: &str) {
        let mut heard = lock(&self.0.heard);
        heard.last.insert(name.to_owned(), Instant::now());
    }

    /// Listens anew from now on: this process begins to lead.
    pub fn begin_to_listen(&self) {
        *lock(&self.0.heard) = HeardReplicas::from_now();
    }

    /// Whether a replica has not been heard for longer than `grace`; none where it was not heard yet, and may still be.
    fn is_silent(&self, name: &str, grace: Duration) -> Option<bool> {
        if name == &*self.0.name {
            return Some(false);
        }
        let heard = lock(&self.0.heard);
        match heard.last.get(name) {
            Some(last) => Some(last.elapsed() > grace),
            None => (heard.since.elapsed() > grace).then_some(true),
        }
    }

    /// A request to the replica at an address, which knows by it where it comes from.
    ///
    /// # Errors
    /// Where the address is none, or the system has no client.
    pub async fn request(&self, method: Method, address: &str, path: &str) -> Result<RequestBuilder, String> {
        let mut url = Url::parse(&format!("{address}{path}")).map_err(|why| why.to_string())?;
        let client = self.client(address, &url).await?;
        if let Some(host) = self.named_host(&url) {
            url.set_host(Some(host)).map_err(|why| why.to_string())?;
        }
        Ok(client
            .request(method, url)
            .header(REPLICA, &*self.0.name)
            .header(REPLICA_SECRET, &self.0.secret))
    }

    /// The host that the certificate of a replica names in place of its address.
    fn named_host(&self, url: &Url) -> Option<&str> {
        let is_secure = url.scheme() == "https";
        self.0.trust.host.as_deref().filter(|_| is_secure)
    }

    async fn client(&self, address: &str, url: &Url) -> Result<Client, String> {
        let known = lock(&self.0.clients).get(address).cloned();
        if let Some((_, client)) = known {
            return Ok(client);
        }
        let roots = self.0.trust.certificates.iter();
        let roots: Result<Vec<_>, _> = roots.map(|der| Certificate::from_der(der)).collect();
        let roots = roots.map_err(|why| why.to_string())?;
        let at: Vec<SocketAddr> = match (self.named_host(url), url.host_str()) {
            (Some(_), Some(host)) => {
                // An IPv6 address has brackets in a URL.
                let host = host.trim_matches(['[', ']']);
                let found = tokio::net::lookup_host((host, url.port_or_known_default().unwrap_or(0))).await;
                found.map_err(|why| why.to_string())?.collect()
            }
            _ => Vec::new(),
        };
        let made = client_to_anywhere(|client| {
            let client = client.connect_timeout(CONNECT_WAIT).tls_certs_merge(roots);
            match self.named_host(url) {
                Some(host) => client.resolve_to_addrs(host, &at),
                None => client,
            }
        })?;
        lock(&self.0.clients).insert(address.to_owned(), (Instant::now(), made.clone()));
        Ok(made)
    }

    /// Takes note that a request to an address has failed, and says why: where it was not reached, its name may have another address by now.
    pub fn note_failure(&self, address: &str, why: &reqwest::Error) -> String {
        // A client with a name of its own for the address does not look for it again.
        if why.is_connect() && self.0.trust.host.is_some() {
            lock(&self.0.clients)
                .retain(|client, (made, _)| client != address || made.elapsed() < CLIENT_KEPT_AT_LEAST);
        }
        error_without_address(why)
    }

    /// Asks a replica for something that it answers itself.
    async fn ask(&self, method: Method, name: &str, path: &str) -> Result<reqwest::Response, ReplicaError> {
        let silent = |why: String| ReplicaError::Silent(name.to_owned(), why);
        let row = self.row(name).await.map_err(|why| silent(why.to_string()))?;
        let row = row.ok_or_else(|| silent("it is not known".to_owned()))?;
        let request = self.request(method, &row.address, path).await.map_err(silent)?;
        let answer = tokio::time::timeout(ANSWER_WAIT, request.send()).await;
        let answer = answer.map_err(|_| silent("no answer in time".to_owned()))?;
        let answer = answer.map_err(|why| silent(self.note_failure(&row.address, &why)))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap_or_default();
        Err(ReplicaError::Refused(name.to_owned(), status, text))
    }

    /// The list of files of an agreement's job at the replica that ran it, as JSON.
    ///
    /// # Errors
    /// [`ReplicaError`].
    pub async fn outputs(&self, replica: &str, agreement: Uuid) -> Result<Vec<u8>, ReplicaError> {
        let answer = self
            .ask(Method::GET, replica, &path_of_outputs(agreement))
            .await?;
        let read = answer.bytes().await;
        let read =
            read.map_err(|why| ReplicaError::Silent(replica.to_owned(), error_without_address(&why)))?;
        Ok(read.to_vec())
    }

    /// One of these files.
    ///
    /// # Errors
    /// [`ReplicaError`].
    pub async fn output(
        &self,
        replica: &str,
        agreement: Uuid,
        name: &str,
    ) -> Result<reqwest::Response, ReplicaError> {
        let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        // In a path a plus sign is one.
        let path = format!("{}/{}", path_of_outputs(agreement), name.replace('+', "%20"));
        self.ask(Method::GET, replica, &path).await
    }

    /// Removes the files of an agreement's job there.
    ///
    /// # Errors
    /// [`ReplicaError`].
    pub async fn remove_outputs(&self, replica: &str, agreement: Uuid) -> Result<(), ReplicaError> {
        let path = path_of_outputs(agreement);
        self.ask(Method::DELETE, replica, &path).await.map(drop)
    }
}

fn path_of_outputs(agreement: Uuid) -> String {
    format!("/replicas/outputs/{agreement}")
}
