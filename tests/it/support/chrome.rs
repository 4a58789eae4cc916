//! A real browser: chromium without a window, driven over `WebDriver` by its chromedriver. It has a profile of its own in a temporary
//! folder, speaks with this machine alone, and ends with this value.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::NO_CERTIFICATES;
use super::eventually;
use super::offers::file;

/// How long a page may take to be as expected, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_mins(1);
/// The rules of accessibility, which `scripts/test` installs.
const AXE: &str = "target/axe/node_modules/axe-core/axe.min.js";
/// The browser keeps to itself and to this machine.
const ARGUMENTS: [&str; 12] = [
    "--headless=new",
    // The tests may run as root, where the sandbox does not work.
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--lang=en",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// The rules about colours: the costliest, and the only ones that another scheme can break.
const COLOURS: [&str; 2] = ["color-contrast", "link-in-text-block"];

/// The size of a window, in pixels.
pub(crate) const PHONE: (u32, u32) = (360, 780);
pub(crate) const DESK: (u32, u32) = (1_440, 900);

/// The member by which `WebDriver` names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window.
pub(crate) struct Chrome {
    driver: Child,
    /// Of the driver, such as `127.0.0.1:1234`.
    address: String,
    session: String,
    http: reqwest::Client,
    /// Its profile.
    folder: TempDir,
}

/// Starts the driver, with its files in a folder, and returns it with its port. It takes a port that is free for one version of IP, and ends
/// where another process has the same one of the other version: then it is started again.
fn start_driver(folder: &Path) -> (Child, String) {
    for _ in 0..10 {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", folder)
            // What a killed browser leaves goes with it.
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts: scripts/test installs it");
        let said = BufReader::new(driver.stdout.take().expect("its output is piped")).lines();
        let port = said.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        if let Some(port) = port {
            return (driver, port);
        }
        driver.wait().expect("it has ended");
    }
    panic!("chromedriver has ended ten times without a port");
}

impl Chrome {
    /// Starts a browser in a time zone, with a window as on a desk.
    pub(crate) async fn start(zone: &str) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = tempfile::Builder::new().prefix("bespeak-chrome-").tempdir();
        let folder = folder.expect("a temporary folder");
        let (driver, port) = start_driver(folder.path());
        let address = format!("127.0.0.1:{port}");
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only(NO_CERTIFICATES)
            .build();
        let mut chrome = Self {
            driver,
            address,
            session: String::new(),
            http: http.expect("a client can be made"),
            folder,
        };
        let profile = format!("--user-data-dir={}", chrome.folder.path().display());
        let arguments: Vec<_> = ARGUMENTS.into_iter().chain([profile.as_str()]).collect();
        let patience = SOON.as_millis();
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": arguments },
            "timeouts": { "script": patience, "pageLoad": patience } });
        let body = json!({ "capabilities": { "alwaysMatch": wanted } });
        let made = chrome.ask(Method::POST, "", Some(body)).await;
        chrome.session = format!("/{}", made["sessionId"].as_str().expect("a session"));
        let zone = json!({ "timezoneId": zone });
        chrome.command("Emulation.setTimezoneOverride", zone).await;
        chrome.resize(DESK).await;
        chrome
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        self.try_ask(method, path, body)
            .await
            .unwrap_or_else(|why| panic!("{path}: {why}"))
    }

    /// The value of an answer of the driver, or its error.
    async fn try_ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, String> {
        let url = format!("http://{}/session{}{path}", self.address, self.session);
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("chromedriver answers");
        let is_good = answer.status().is_success();
        let mut answer: Value = answer.json().await.expect("its answers are JSON");
        let value = answer["value"].take();
        if is_good {
            Ok(value)
        } else {
            Err(format!("{}: {}", value["error"], value["message"]))
        }
    }

    /// Has the browser itself do something.
    async fn command(&self, name: &str, parameters: Value) {
        let body = json!({ "cmd": name, "params": parameters });
        self.ask(Method::POST, "/goog/cdp/execute", Some(body)).await;
    }

    /// Sets the size of the window.
    pub(crate) async fn resize(&self, (width, height): (u32, u32)) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Prefers light or dark pages.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", features).await;
    }

    /// From now on the scripts of pages are not run.
    pub(crate) async fn forbid_scripts(&self) {
        self.command("Emulation.setScriptExecutionDisabled", json!({ "value": true }))
            .await;
    }

    /// From now on the pages that are loaded are counted, the present one not.
    pub(crate) async fn count_loads(&self) {
        let source = "sessionStorage.loads = Number(sessionStorage.loads ?? 0) + 1";
        let source = json!({ "source": source });
        self.command("Page.addScriptToEvaluateOnNewDocument", source)
            .await;
    }

    /// How many pages have been loaded since they are counted.
    pub(crate) async fn loads(&self) -> u64 {
        let loads = self.run("return Number(sessionStorage.loads)", json!([])).await;
        loads.as_u64().expect("pages are counted")
    }

    /// The text of a file that a link of this name leads to and that the browser keeps.
    pub(crate) async fn download(&self, name: &str) -> String {
        let folder = self.folder.path().join("downloads");
        let allowed = json!({ "behavior": "allow", "downloadPath": folder });
        self.command("Browser.setDownloadBehavior", allowed).await;
        self.press(name).await;
        // It is whole once its part has its name. The browser makes an empty file of this name before that.
        let (file, part) = (folder.join(name), folder.join(format!("{name}.crdownload")));
        eventually(&format!("the file {name}"), SOON, async || {
            let is_whole = file.exists() && !part.exists();
            is_whole.then(|| std::fs::read_to_string(&file).ok())?
        })
        .await
    }

    /// Presses the mouse on one element and lets it go on another one.
    pub(crate) async fn drag(&self, from: &str, to: &str) {
        let mut places = Vec::new();
        for selector in [from, to] {
            let element = self.element("css selector", selector).await;
            places.push(json!({ ELEMENT: element.trim_start_matches("/element/") }));
        }
        let over = |place: &Value| json!({ "type": "pointerMove", "origin": place, "x": 0, "y": 0 });
        let actions = [
            over(&places[0]),
            json!({ "type": "pointerDown", "button": 0 }),
            over(&places[1]),
            json!({ "type": "pointerUp", "button": 0 }),
        ];
        let mouse = json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": actions });
        self.ask(Method::POST, "/actions", Some(json!({ "actions": [mouse] })))
            .await;
    }

    /// Loads a page.
    pub(crate) async fn open(&self, url: &str) {
        self.ask(Method::POST, "/url", Some(json!({ "url": url }))).await;
    }

    /// The address of the present page.
    pub(crate) async fn address(&self) -> String {
        let address = self.ask(Method::GET, "/url", None).await;
        address.as_str().expect("an address is text").to_owned()
    }

    /// The value of a function's body in the page, with its arguments.
    pub(crate) async fn run(&self, script: &str, arguments: Value) -> Value {
        let body = json!({ "script": script, "args": arguments });
        self.ask(Method::POST, "/execute/sync", Some(body)).await
    }

    /// The text that the page shows.
    pub(crate) async fn text(&self) -> String {
        let text = self.run("return document.body.innerText", json!([])).await;
        text.as_str().expect("a text").to_owned()
    }

    /// Waits until the page shows a text.
    pub(crate) async fn see(&self, text: &str) {
        eventually(&format!("{text:?} on the page"), SOON, async || {
            self.text().await.contains(text).then_some(())
        })
        .await;
    }

    /// Clicks the first element of a selector, as a hand does: it must be there, be shown, and lie under nothing else.
    pub(crate) async fn click(&self, selector: &str) {
        let element = self.element("css selector", selector).await;
        self.ask(Method::POST, &format!("{element}/click"), Some(json!({})))
            .await;
    }

    /// Clicks the first link or button with a text.
    pub(crate) async fn press(&self, text: &str) {
        let path = format!("//*[self::a or self::button][normalize-space()=\"{text}\"]");
        let element = self.element("xpath", &path).await;
        self.ask(Method::POST, &format!("{element}/click"), Some(json!({})))
            .await;
    }

    /// Types into an empty field.
    pub(crate) async fn type_into(&self, selector: &str, text: &str) {
        let element = self.element("css selector", selector).await;
        let text = json!({ "text": text });
        self.ask(Method::POST, &format!("{element}/value"), Some(text))
            .await;
    }

    /// Sets fields by their names, as a hand does: radio buttons are chosen by their values.
    pub(crate) async fn fill(&self, fields: &[(&str, &str)]) {
        let script = "for (const [name, value] of arguments[0]) {
                const fields = [...document.querySelectorAll(`[name=${CSS.escape(name)}]`)];
                const field = fields.find((one) => one.type !== 'radio' || one.value === value);
                if (!field) return name;
                if (field.type === 'radio') field.checked = true; else field.value = value;
                field.dispatchEvent(new Event('input', { bubbles: true }));
                field.dispatchEvent(new Event('change', { bubbles: true }));
            }
            return null;";
        let missing = self.run(script, json!([fields])).await;
        assert_eq!(
            missing,
            Value::Null,
            "there is no such field at {}",
            self.address().await
        );
    }

    /// The path of an element, which may still be loading.
    async fn element(&self, using: &str, value: &str) -> String {
        let wanted = json!({ "using": using, "value": value });
        let found = eventually(&format!("the element {value}"), SOON, async || {
            let found = self.try_ask(Method::POST, "/element", Some(wanted.clone())).await;
            found.ok()
        })
        .await;
        let id = found[ELEMENT].as_str().expect("an element has an id");
        format!("/element/{id}")
    }

    /// What the window shows, as a picture.
    pub(crate) async fn photograph(&self) -> Vec<u8> {
        let picture = self.ask(Method::GET, "/screenshot", None).await;
        let picture = picture.as_str().expect("a picture is text");
        STANDARD.decode(picture).expect("a picture is base64")
    }

    /// The rules of accessibility that the page breaks, each with the first of its elements.
    pub(crate) async fn barriers(&self) -> Vec<String> {
        self.broken_rules(&["html"], json!({})).await
    }

    /// The rules of accessibility but those about colours that the page breaks.
    pub(crate) async fn barriers_but_colours(&self) -> Vec<String> {
        let off = COLOURS.map(|rule| (rule, json!({ "enabled": false })));
        let off: BTreeMap<_, _> = off.into();
        self.broken_rules(&["html"], json!({ "rules": off })).await
    }

    /// The rules about colours that these parts of the page break, each named by a selector. No other rule depends on the
    /// scheme of the colours.
    pub(crate) async fn barriers_of_colours(&self, parts: &[&str]) -> Vec<String> {
        self.broken_rules(parts, json!({ "runOnly": COLOURS })).await
    }

    async fn broken_rules(&self, parts: &[&str], options: Value) -> Vec<String> {
        // The rules have half a megabyte: a page is given them once.
        if self.run("return !window.axe", json!([])).await == true {
            self.run(&file(AXE), json!([])).await;
        }
        let script = "const [parts, options, done] = arguments;
            const words = (rule) => `${rule.id}: ${rule.nodes[0].html} (${rule.nodes[0].failureSummary})`;
            axe.run({ include: parts.map((part) => [part]) }, { resultTypes: ['violations'], ...options })
                .then((found) => done(found.violations.map(words)), (why) => done([String(why)]));";
        let body = json!({ "script": script, "args": [parts, options] });
        let found = self.ask(Method::POST, "/execute/async", Some(body)).await;
        serde_json::from_value(found).expect("a list of texts")
    }

    /// What the page's layout does wrong in this window: it is wider than the window, or something to click lies outside, or a word
    /// of the navigation is broken.
    pub(crate) async fn misplaced(&self) -> Vec<String> {
        let script = "const wide = document.documentElement.scrollWidth;
            const wrong = wide > innerWidth ? [`the page is ${wide} wide`] : [];
            const words = (one) => `${one.tagName} ${one.innerText || one.value || one.name}`;
            for (const one of document.querySelectorAll('a, button, input:not([type=hidden]), select, summary')) {
                const box = one.getBoundingClientRect();
                const is_scrolled = one.closest('.wide, .scroll') && !one.closest('form, button');
                if (box.width === 0 || one.matches('.skip') || is_scrolled || one.closest('svg')) continue;
                if (box.left < 0 || box.right > innerWidth) wrong.push(`${words(one)} is outside`);
            }
            for (const link of document.querySelectorAll('nav.sections a')) {
                const lines = new Set([...link.getClientRects()].map((box) => box.top));
                const height = parseFloat(getComputedStyle(link).lineHeight);
                if (lines.size > 1 || link.clientHeight > 2 * height) wrong.push(`${words(link)} is broken`);
            }
            return wrong;";
        let found = self.run(script, json!([])).await;
        serde_json::from_value(found).expect("a list of texts")
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        // The browser outlives a driver that is killed.
        if let Ok(mut stream) = TcpStream::connect(&self.address) {
            let end = format!(
                "DELETE /session{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                self.session, self.address
            );
            let _ = stream.write_all(end.as_bytes());
            // The answer comes when the browser has ended; the driver keeps the connection.
            let _ = stream.set_read_timeout(Some(SOON));
            let _ = stream.read(&mut [0; 64]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
