//! Peers over TLS.

use super::{PATIENT, SOON, Secure};
use crate::support::server::Server;
use crate::support::{eventually, run};

/// Has a service trust the certificate of the others here.
const TRUSTING: &str = concat!(
    "export SSL_CERT_FILE=",
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/tls/certificate.pem; exec \"$@\""
);

#[test]
fn a_peer_is_spoken_to_where_its_certificate_is_trusted_and_nowhere_else() {
    run(async {
        let south = Secure::start(PATIENT);
        let configuration = format!(
            "[federation]\nname = \"north\"\n\
             [[peer]]\nname = \"south\"\naddress = \"https://localhost:{}\"\nkey = \"k\"\n",
            south.port
        );
        for (shell, is_trusted) in [(TRUSTING, true), ("exec \"$@\"", false)] {
            let north = Server::through(shell, &configuration);
            let client = north.client();
            let peer = eventually("the peer is looked at", SOON, async || {
                let peer = client.get_json("/peers").await["peers"][0].clone();
                peer["lookedAt"].is_string().then_some(peer)
            })
            .await;
            assert_eq!(peer["says"].is_object(), is_trusted, "{peer}");
            let why = peer["silent"].as_str().unwrap_or_default();
            assert_eq!(why.contains("certificate"), !is_trusted, "{peer}");
        }
    });
}
