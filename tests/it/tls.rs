//! The service over TLS, with a certificate that its clients trust.
//!
//! `tls/` has two certificates for `localhost` and their keys, which are no secret: `openssl req -x509 -newkey ec -pkeyopt
//! ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext
//! basicConstraints=critical,CA:FALSE -keyout key.pem -out certificate.pem`

mod peers;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::support::{output_of, poll_until};

const SOON: Duration = Duration::from_mins(1);
/// Seconds that a client has for its request, so that none is cut off.
const PATIENT: u32 = 600;

/// A service that is killed with this value, and its port.
struct Secure {
    process: Child,
    port: String,
    folder: tempfile::TempDir,
}

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/tls")
        .join(name)
}

/// A service that waits so long for a connection to be made and for the head of a request.
fn serve(folder: &Path, certificate: &Path, header_seconds: u32) -> Command {
    serve_with(folder, (certificate, &pem("key.pem")), header_seconds)
}

fn serve_with(folder: &Path, (certificate, key): (&Path, &Path), header_seconds: u32) -> Command {
    let configuration = format!(
        "[limits]\nheader_seconds = {header_seconds}\n[tls]\ncertificate = '{}'\nkey = '{}'\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 1\n",
        certificate.display(),
        key.display()
    );
    fs::write(folder.join("bespeak.toml"), configuration).expect("the configuration can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bespeak"));
    command
        .current_dir(folder)
        .args(["serve", "--listen", "127.0.0.1:0", "--config", "bespeak.toml"])
        .args(["--data-dir", "data"]);
    command
}

impl Secure {
    fn start(header_seconds: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let output = File::create(folder.path().join("output")).expect("a file for the output");
        let pair = ["certificate.pem", "key.pem"].map(|name| {
            let own = folder.path().join(name);
            fs::copy(pem(name), &own).expect("it can be copied");
            own
        });
        let process = serve_with(folder.path(), (&pair[0], &pair[1]), header_seconds)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .expect("the executable can be started");
        let mut server = Self {
            process,
            port: String::new(),
            folder,
        };
        let listening = || {
            let output = fs::read_to_string(server.folder.path().join("output")).ok()?;
            let (_, after) = output.split_once("listening on https://127.0.0.1:")?;
            after.split_once('\n').map(|(port, _)| port.to_owned())
        };
        let mut port = None;
        poll_until(SOON, || {
            port = listening();
            port.is_some()
        });
        server.port = port.expect("a service that listens");
        server
    }

    fn curl(&self, arguments: &[&str], path: &str) -> Output {
        let mut command = Command::new("curl");
        let url = format!("https://localhost:{}{path}", self.port);
        command
            .args(["--silent", "--show-error", "--noproxy", "*"])
            .args(arguments)
            .arg(url);
        output_of(&mut command, SOON)
    }
}

impl Secure {
    /// Puts a certificate and a key of `tls/` in the place of those that it has.
    fn replace(&self, certificate: &str, key: &str) {
        for (from, to) in [(certificate, "certificate.pem"), (key, "key.pem")] {
            fs::copy(pem(from), self.folder.path().join(to)).expect("it can be copied");
        }
    }

    /// Whether a client that trusts only this certificate takes the service for the right one.
    fn is_trusted_by(&self, certificate: &str) -> bool {
        let certificate = pem(certificate);
        let trusting = ["--cacert", certificate.to_str().expect("a path in UTF-8")];
        self.curl(&trusting, "/readyz").status.success()
    }

    /// Runs a command against it, trusting both certificates.
    fn run(&self, arguments: &[&str]) -> Output {
        let both = self.folder.path().join("both.pem");
        let texts = ["certificate.pem", "next-certificate.pem"].map(|name| fs::read_to_string(pem(name)));
        let texts: Vec<String> = texts.into_iter().map(|text| text.expect("it is there")).collect();
        fs::write(&both, texts.concat()).expect("it can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bespeak"));
        command
            .current_dir(self.folder.path())
            .env("SSL_CERT_FILE", &both)
            .env("BESPEAK_SERVER", format!("https://localhost:{}", self.port))
            .args(arguments)
            .args(["--data-dir", "data"]);
        output_of(&mut command, SOON)
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn with_a_certificate_everything_is_spoken_over_tls_and_nothing_else_is() {
    let server = Secure::start(PATIENT);
    let certificate = pem("certificate.pem");
    let trusting = ["--cacert", certificate.to_str().expect("a path in UTF-8")];
    let is_ready = |said: &[u8]| String::from_utf8_lossy(said).starts_with("ready\nrole: leader\n");
    let ready = server.curl(&trusting, "/readyz");
    assert!(is_ready(&ready.stdout), "{ready:?}");
    // Browsers are told to come back by TLS only.
    let with_head = server.curl(&[&trusting[..], &["-i"]].concat(), "/portal");
    let head = String::from_utf8_lossy(&with_head.stdout).to_lowercase();
    assert!(head.contains("\nstrict-transport-security: max-age="), "{head}");
    // The health check takes the service's own certificate, by whatever address.
    let listening = format!("0.0.0.0:{}", server.port);
    let healthy = server.run(&["health", "--listen", &listening, "--config", "bespeak.toml"]);
    assert!(is_ready(&healthy.stdout), "{healthy:?}");
    let distrusting = server.curl(&[], "/readyz");
    assert!(!distrusting.status.success(), "{distrusting:?}");
    let mut client = Command::new(env!("CARGO_BIN_EXE_bespeak"));
    client
        .current_dir(server.folder.path())
        .env("SSL_CERT_FILE", &certificate)
        .env("BESPEAK_SERVER", format!("https://localhost:{}", server.port))
        .arg("offer")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sleep.xml"))
        .args(["--data-dir", "data"]);
    let offered = output_of(&mut client, SOON);
    assert!(offered.status.success(), "{offered:?}");
    let key = fs::read_to_string(server.folder.path().join("data/operator.key")).expect("a key");
    let bearer = format!("Authorization: Bearer {}", key.trim());
    let sleep = concat!("@", env!("CARGO_MANIFEST_DIR"), "/examples/sleep.xml");
    let posted = [
        "-H",
        &bearer,
        "-H",
        "Content-Type: application/xml",
        "--data-binary",
        sleep,
    ];
    let made = server.curl(&[&trusting[..], &posted].concat(), "/agreements");
    let made = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(
        made.contains(&format!("https://localhost:{}/agreements/", server.port)),
        "{made}"
    );
    // The service hangs up on a client that sends plain text, or nothing.
    let server = Secure::start(1);
    for said in ["GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", ""] {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", server.port)).expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a bound");
        stream.write_all(said.as_bytes()).expect("it is taken");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("ready"), "{answer:?}");
    }
    // On a slow machine a second may be too short for a client that does well.
    let ready = || server.curl(&trusting, "/readyz").status.success();
    assert!(poll_until(SOON, ready), "it serves others as before");
}

#[test]
fn a_certificate_that_cannot_be_used_keeps_the_service_from_starting_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, what) in [
        ("key.pem", "a certificate in PEM is expected"),
        ("none.pem", "No such file"),
    ] {
        let refused = output_of(&mut serve(folder.path(), &pem(file), PATIENT), SOON);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{said}");
        assert!(
            said.contains("tls.certificate: ") && said.contains(what),
            "{said}"
        );
    }
}

#[test]
fn a_reload_takes_over_another_certificate_for_new_connections_and_a_broken_pair_changes_nothing() {
    let server = Secure::start(PATIENT);
    assert!(server.is_trusted_by("certificate.pem"));
    // The key of another certificate.
    server.replace("next-certificate.pem", "key.pem");
    let broken = server.run(&["reload"]);
    let said = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert!(
        !broken.status.success() && said.contains("tls.key: "),
        "{broken:?}"
    );
    assert!(server.is_trusted_by("certificate.pem"));
    let checked = server.run(&["config", "check", "bespeak.toml"]);
    assert_eq!(checked.status.code(), Some(2), "{checked:?}");

    server.replace("next-certificate.pem", "next-key.pem");
    let dry = server.run(&["reload", "--dry-run"]);
    assert!(dry.status.success(), "{dry:?}");
    assert!(server.is_trusted_by("certificate.pem"));
    let taken = server.run(&["reload"]);
    assert!(taken.status.success(), "{taken:?}");
    assert!(server.is_trusted_by("next-certificate.pem"));
    assert!(!server.is_trusted_by("certificate.pem"));

    // SIGHUP does the same.
    server.replace("certificate.pem", "key.pem");
    let mut hang_up = Command::new("kill");
    hang_up.args(["-HUP", &server.process.id().to_string()]);
    assert!(output_of(&mut hang_up, SOON).status.success());
    assert!(poll_until(SOON, || server.is_trusted_by("certificate.pem")));
}
