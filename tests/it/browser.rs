//! The pages in a real browser: the loop of a requester with and without scripts, the operator's drain, what the script does in forms,
//! and on every page its layout, its colours, its accessibility, and texts that others have entered.
//!
//! With `BESPEAK_SCREENSHOTS=FOLDER` the steps and the pages are photographed into that folder (`scripts/screenshots`).

mod forms;
mod pages;
mod user_journeys;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::support::chrome::{Chrome, DESK, PHONE};
use crate::support::server::Server;

/// How long a job that does nothing may take on a busy machine.
const SOON: Duration = Duration::from_mins(3);

/// The zone of the browsers: never UTC.
const ZONE: &str = "Asia/Tokyo";

/// The button of the form, which has the name of a link.
const SEND: &str = "main form button.main";

/// Two resources with prices, and jobs of a few seconds.
pub(crate) const CONFIGURATION: &str = r#"
[pricing]
currency = "EUR"
node_hour = "10"

[[resource]]
name = "local"
kind = "local"
nodes = 4

[[resource]]
name = "other"
kind = "local"
nodes = 4

[[application]]
name = "sleep"
program = "/usr/bin/sleep"
trusted = true
[[application.argument]]
name = "seconds"
type = "integer"
min = 0
max = 100

[[application]]
name = "echo"
program = "/usr/bin/echo"
trusted = true
[[application.argument]]
name = "text"
type = "text"
max_length = 200
"#;

/// A visitor at a real browser, and the film of what it does.
struct Visit {
    chrome: Chrome,
    base: String,
    /// Where the pictures go, where they are wanted, and the title of the film.
    film: Option<(PathBuf, &'static str)>,
    pictures: usize,
}

impl Visit {
    /// Opens a browser, before it has signed in.
    async fn begin(server: &Server, title: &'static str) -> Self {
        let folder = std::env::var_os("BESPEAK_SCREENSHOTS").map(PathBuf::from);
        Self {
            chrome: Chrome::start(ZONE).await,
            base: format!("http://{}", server.address()),
            film: folder.map(|folder| (folder, title)),
            pictures: 0,
        }
    }

    /// Signs in on the page that is shown without a session.
    async fn sign_in(&self, key: &str) {
        self.go("/portal").await;
        self.enter_key(key).await;
    }

    /// Signs in on the page that is shown.
    async fn enter_key(&self, key: &str) {
        self.chrome.type_into("#key", key).await;
        self.chrome.press("Sign in").await;
        self.chrome.see("Sign out").await;
    }

    /// Loads a page of the service.
    async fn go(&self, path: &str) {
        self.chrome.open(&format!("{}{path}", self.base)).await;
    }

    /// The path of the page that is shown.
    async fn path(&self) -> String {
        let address = self.chrome.address().await;
        let path = address.strip_prefix(&self.base);
        path.unwrap_or_else(|| panic!("{address} is elsewhere"))
            .to_owned()
    }

    /// Has a picture taken of what is shown, as the next of the film.
    async fn photograph(&mut self, what: &str) {
        if let Some((folder, title)) = &self.film {
            self.pictures += 1;
            let name = format!("{title}-{:02}-{what}.png", self.pictures);
            let picture = self.chrome.photograph().await;
            std::fs::create_dir_all(folder).expect("a folder for pictures");
            std::fs::write(folder.join(name), picture).expect("a picture is written");
        }
    }

    /// Asserts that the page that is shown breaks no rule of accessibility and lies in its window, on a phone and on a desk, and takes
    /// pictures.
    async fn look(&mut self, what: &str) {
        for size in [PHONE, DESK] {
            self.chrome.resize(size).await;
            let what = format!("{what}-{}", size.0);
            self.photograph(&what).await;
            assert_eq!(self.chrome.misplaced().await, Vec::<String>::new(), "{what}");
            assert_eq!(self.chrome.barriers().await, Vec::<String>::new(), "{what}");
        }
    }

    /// A value that the page has as it was loaded: whether it was loaded again is seen by that.
    async fn mark(&self) {
        self.chrome.run("window.marked = true", json!([])).await;
    }

    /// Whether the page is the one that was marked.
    async fn is_marked(&self) -> bool {
        self.chrome.run("return window.marked === true", json!([])).await == true
    }
}
