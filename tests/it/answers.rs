//! Golden answers: those of the service to every file of `tests/messages` and `examples`, byte for byte, as digests, a line a file in
//! `tests/golden-answers.txt` (`crate::golden` says how they are compared and written again).
//!
//! The service serves in this process, on a real port and store, by a clock that stands a day before the windows of the messages. It
//! has two resources, a price list and quotas, and is known by a fixed address. It runs no jobs and moves nothing up, so that nothing
//! depends on how long something takes. Ids get numbers in the order in which an answer names them.
//!
//! Files are sent in the order of their names, each where it belongs and to `/agreements` anyway: first as a dry run that asks for
//! JSON, then in earnest as XML, and once more for JSON. What was made is read in both, as XML and as JSON. The messages of
//! `examples/negotiation` are sent once each, one after another, with the ids of the answers before in place of their words. Files of
//! the folder `messages` beside the one that `BESPEAK_REFERENCE_DATA` names come last, where `tests/messages` has no such file or
//! another one. There are no files of requests in JSON: their answers are in `json`, `openapi` and `flat_offers`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use access::{Access, KeyLimits, KeyWish, Role};
use api::{self, Api, Connections, ListenerBounds, Proxies, RequestLimits, RequestMetrics, Stage, WrongKeys};
use domain::agreement::Currency;
use domain::catalogue::Catalogue;
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::Resource;
use execution::files::inputs::InputFiles;
use execution::files::job_folders::JobFolders;
use planner::{Pricing, Quotas, Settings};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use scheduler::{Fraction, Rate};
use service::{OnLoss, Service, TemplateText, Templates, fit_templates_to_resources};
use store::{Store, templates};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use writer::Planner;

use crate::golden::{assert_golden, digests_in, numbered};
use crate::support::client::{Answer, Client};
use crate::support::negotiation::{counters, open};
use crate::support::offers::{Offer, file};
use crate::support::run;
use crate::support::stores::TestDatabase;

/// The present: 2026-01-09T00:00:00Z. The windows of the messages are on the days after it.
const NOW: i64 = 1_767_916_800;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// The day in examples that leave it open.
const EXAMPLE_DAY: &str = "2026-01-12";
/// By which clients know the service.
const ADDRESS: &str = "http://bespeak.example";
const XML: &str = "application/xml";
const JSON: &str = "application/json";
/// Nodes of the larger resource.
const NODES: u32 = 32;
const PATIENCE: Duration = Duration::from_mins(10);

#[test]
fn golden_answers_to_every_message_and_example_are_as_before() {
    let database = TestDatabase::sqlite();
    let traces = run(async {
        let service = InProcessService::start(database.url()).await;
        let mut traces = BTreeMap::new();
        for (name, document) in documents() {
            let trace = service.answers_to(&name, &document).await;
            traces.insert(name, trace);
        }
        service.negotiate(&mut traces).await;
        for (name, document) in reference_documents() {
            let trace = service.answers_to(&name, &document).await;
            traces.insert(name, trace);
        }
        service.end().await;
        traces
    });
    assert_golden(&digests_in("golden-answers.txt"), &traces);
}

/// The folder of the repository.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents below a folder by their names, those of folders in it with these before.
fn documents_below(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, before)) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of documents").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = format!("{before}{}", name.to_str().expect("a name in ASCII"));
            if path.is_dir() {
                folders.push((path, format!("{name}/")));
            } else if let Some(name) = name.strip_suffix(".xml") {
                let text = fs::read_to_string(&path).expect("a document");
                found.insert(name.to_owned(), text);
            }
        }
    }
    found
}

/// The documents of the repository that stand alone, by the names that their answers have.
fn documents() -> BTreeMap<String, String> {
    let below = |folder: &str, name: &str| {
        let documents = documents_below(&repository().join(folder));
        documents
            .into_iter()
            .map(|(document, text)| (format!("{name}/{document}"), text))
            .collect::<Vec<_>>()
    };
    let mut all: BTreeMap<String, String> = below("tests/messages", "messages").into_iter().collect();
    all.extend(below("examples", "examples"));
    all.retain(|name, _| !name.starts_with("examples/negotiation/"));
    assert!(all.len() > 40, "{:?}", all.keys());
    all
}

/// The messages beside the reference data that the repository does not have.
fn reference_documents() -> BTreeMap<String, String> {
    let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA").map(PathBuf::from) else {
        return BTreeMap::new();
    };
    let messages = folder.parent().map(|parent| parent.join("messages"));
    let Some(messages) = messages.filter(|messages| messages.is_dir()) else {
        return BTreeMap::new();
    };
    let own = documents_below(&repository().join("tests/messages"));
    let others = documents_below(&messages).into_iter();
    others
        .filter(|(name, text)| own.get(name) != Some(text))
        .map(|(name, text)| (format!("reference/{name}"), text))
        .collect()
}

/// A value as its type has it: of types that have no name here, too.
fn fresh<T: Default>() -> T {
    T::default()
}

/// The provider: two resources, a price list, and quotas.
fn settings() -> Settings {
    let fast = Resource {
        rate: Rate::from_millionths(1_500_000).expect("more than nothing"),
        ..Resource::new("fast", "local", 8)
    };
    let resources = vec![Resource::new("local", "local", NODES), fast];
    let mut settings = Settings::new(resources, 365 * DAY);
    // Nothing moves up between requests: that would depend on how long they take.
    settings.improving.least_gain.seconds = 1_000 * DAY;
    let mut pricing = Pricing::flat(100_000, Currency::parse("EUR").expect("three capital letters"));
    pricing.cancellation = Fraction::percent(10);
    pricing.change = Fraction::percent(5);
    settings.pricing = Some(pricing);
    // The clock stands, so that no offer lapses.
    settings.negotiation.holds_max = 100;
    settings.quotas = Quotas {
        node_hours: Some(20_000),
        agreements: Some(1_000),
        ..Quotas::default()
    };
    settings
}

/// The templates that come with the service, and the one of the messages.
fn templates(settings: &Settings) -> Templates {
    let texts = [
        "templates/agreements/advance-reservation.xml",
        "templates/agreements/guaranteed-reservation.xml",
        "tests/messages/m01-template.xml",
    ];
    let texts = texts.map(|path| TemplateText {
        what: path.to_owned(),
        text: file(path).into_bytes(),
        slot_probability: 0.95,
        overrun_percent: None,
        on_loss: OnLoss::default(),
    });
    Templates::load(&texts, settings).expect("they can be read")
}

/// The service in this process.
struct InProcessService {
    client: Client,
    stop: CancellationToken,
    planned: tokio::task::JoinHandle<()>,
    served: tokio::task::JoinHandle<()>,
    store: Store,
    _folder: TempDir,
    _catalogue: watch::Sender<Arc<Catalogue>>,
    _stage: watch::Sender<Stage>,
}

impl InProcessService {
    async fn start(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("files")).expect("a folder can be made");
        fs::write(folder.path().join("files/input.txt"), "abc").expect("a file can be written");
        let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
        let store = Store::open(url).await.expect("a database");
        let lease = store.acquire_lease().await.expect("no other process decides");
        let (settings, stop) = (settings(), CancellationToken::new());
        let templates = templates(&settings);
        templates::keep_template_versions(&store, &templates.versions())
            .await
            .expect("they are stored");
        let started = Planner::start(settings, store.clone(), lease, clock.clone(), stop.clone()).await;
        let (planner, planned) = started.expect("there is nothing planned");
        let program = |name: &str| Some(Path::new("/usr/bin").join(name));
        let (catalogue_sender, catalogue) = watch::channel(Arc::new(Catalogue::built_in(program)));
        let files = InputFiles::new(folder.path(), 1 << 20).expect("a folder");
        let jobs = JobFolders::new(folder.path(), None).expect("a folder");
        let of_store = store.clone();
        let service = Service::new(
            planner,
            of_store,
            templates,
            catalogue,
            clock.clone(),
            files,
            jobs,
        );
        fit_templates_to_resources(&service).await.expect("they fit");
        let access = Access::new(store.clone(), clock);
        let wish = KeyWish {
            party: "physics".to_owned(),
            role: Role::Consumer,
            label: None,
            expires: None,
            limits: KeyLimits::default(),
        };
        let key = access.add_key(wish, None).await.expect("a key can be made");
        let connections = Connections::new(100, 100);
        let api = Api {
            service: Arc::new(service),
            access,
            body_timeout: PATIENCE,
            places: RequestLimits::new(100, 100),
            wrong_keys: WrongKeys::default(),
            measured: RequestMetrics::since(NOW * MICROS_PER_SECOND),
            connections: connections.clone(),
            tasks: fresh(),
            scheme: "http",
            public_address: Some(ADDRESS.into()),
            stopping: stop.clone(),
        };
        let (stage, present) = watch::channel(Stage::Leading(api::router(api, portal::portal_pages())));
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(at).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let bounds = ListenerBounds {
            connections,
            proxies: Proxies::default(),
            header_timeout: PATIENCE,
            write_timeout: PATIENCE,
            shutdown_timeout: Duration::ZERO,
        };
        let served = tokio::spawn(api::serve(listener, None, present, bounds, stop.clone()));
        Self {
            client: Client::of_address(address, key.secret.expose()),
            stop,
            planned,
            served,
            store,
            _folder: folder,
            _catalogue: catalogue_sender,
            _stage: stage,
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.served.await.expect("the service does not panic");
        self.planned.await.expect("the planner does not panic");
        self.store.close().await;
    }

    async fn post(&self, path: &str, document: &str, accepted: &str) -> Answer {
        let request = self.client.request(Method::POST, path);
        let request = request.header(CONTENT_TYPE, XML).header(ACCEPT, accepted);
        self.client.send(request.body(document.to_owned())).await
    }

    /// The answers to a document, with numbers for ids.
    async fn answers_to(&self, name: &str, document: &str) -> String {
        let document = document.replace("DAY", EXAMPLE_DAY);
        let mut document = document.replace("NODES", &NODES.to_string());
        let mut trace = Trace::default();
        let mut paths = vec!["/agreements".to_owned()];
        let says = |root: &str| document.contains(&format!(":{root}"));
        if says("InitiateNegotiationInput") {
            paths.push("/negotiations".to_owned());
        } else if says("NegotiateInput") || says("AdvertiseInput") {
            let negotiation = open(&self.client).await;
            for part in ["offers", "advertisements"] {
                paths.push(format!("/negotiations/{negotiation}/{part}"));
            }
        } else if says("TerminateInput") {
            let (negotiation, agreement) = (open(&self.client).await, self.reserve().await);
            paths.push(format!("/negotiations/{negotiation}/terminate"));
            paths.push(format!("/agreements/{agreement}/terminate"));
        }
        if document.contains("/a-1<") {
            let agreement = self.reserve().await;
            document = document.replace("/a-1<", &format!("/{agreement}<"));
        }
        for path in paths {
            let dry = format!("{path}?dryRun=true");
            trace.note(&dry, &self.post(&dry, &document, JSON).await);
            for accepted in [XML, JSON] {
                let answer = self.post(&path, &document, accepted).await;
                trace.note(&path, &answer);
                self.read(&mut trace, &answer).await;
            }
        }
        assert!(!trace.text.is_empty(), "{name} has no answer");
        trace.text
    }

    /// Reads what an answer says was made.
    async fn read(&self, trace: &mut Trace, made: &Answer) {
        let Some(location) = made.headers.get(LOCATION) else {
            return;
        };
        let location = location.to_str().expect("an address is ASCII");
        let path = location.strip_prefix(ADDRESS).unwrap_or(location);
        for accepted in [XML, JSON] {
            let request = self.client.request(Method::GET, path).header(ACCEPT, accepted);
            trace.note(path, &self.client.send(request).await);
        }
    }

    /// Some reservation that is in no other's way.
    async fn reserve(&self) -> Uuid {
        let start = NOW + 100 * DAY;
        let offer = Offer::reserve(1, HOUR).within(start, start + 100 * DAY);
        self.client.post("/agreements", offer.xml()).await.created()
    }

    /// Sends the messages of `examples/negotiation` one after another.
    async fn negotiate(&self, traces: &mut BTreeMap<String, String>) {
        let documents = documents_below(&repository().join("examples/negotiation"));
        let mut known: BTreeMap<&str, String> = BTreeMap::from([("DAY", EXAMPLE_DAY.to_owned())]);
        let mut first = None;
        for (name, mut document) in documents {
            for (word, value) in &known {
                document = document.replace(word, value);
            }
            let current = known.get("NEGOTIATION").cloned().unwrap_or_default();
            let path = match &name[..1] {
                "1" | "5" => "/negotiations".to_owned(),
                "2" | "3" | "6" => format!("/negotiations/{current}/offers"),
                "4" | "7" => "/agreements".to_owned(),
                "8" => format!("/agreements/{}/terminate", known["AGREEMENT"]),
                _ => format!("/negotiations/{}/terminate", first.clone().unwrap_or(current)),
            };
            let mut trace = Trace::default();
            let dry = format!("{path}?dryRun=true");
            trace.note(&dry, &self.post(&dry, &document, JSON).await);
            let answer = self.post(&path, &document, XML).await;
            assert!(answer.status.is_success(), "{name}: {answer:?}");
            trace.note(&path, &answer);
            self.read(&mut trace, &answer).await;
            if let Some(counter) = counters(&answer).into_iter().next() {
                known.insert("OFFER", counter.id);
            }
            match path.as_str() {
                "/negotiations" => {
                    let id = answer.created().to_string();
                    first.get_or_insert(id.clone());
                    known.insert("NEGOTIATION", id);
                }
                "/agreements" => {
                    known.insert("AGREEMENT", answer.created().to_string());
                }
                _ => {}
            }
            traces.insert(format!("examples/negotiation/{name}"), trace.text);
        }
    }
}

/// The answers to a document.
#[derive(Default)]
struct Trace {
    text: String,
    numbers: BTreeMap<Uuid, usize>,
}

impl Trace {
    fn note(&mut self, path: &str, answer: &Answer) {
        let location = answer.headers.get(LOCATION);
        let location = location.map_or("-", |location| location.to_str().expect("an address is ASCII"));
        let mut text = String::new();
        let _ = writeln!(text, "{path}: {} {location}", answer.status.as_u16());
        let _ = writeln!(text, "{}\n{}", answer.content_type(), answer.body);
        self.text += &numbered(&text, &mut self.numbers);
    }
}
