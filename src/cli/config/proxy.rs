//! `[proxy]` of the configuration: the proxies that say which client speaks.

use serde::Deserialize;

use api::{PROXY_PROTOCOL, Proxies};

/// The table as written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cli) struct Proxy {
    /// The addresses of the proxies, and networks of them.
    trusted: Vec<String>,
    /// Where they name the client: the PROXY protocol, or the name of a header.
    client_address: String,
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            trusted: Vec::new(),
            client_address: PROXY_PROTOCOL.to_owned(),
        }
    }
}

impl Proxy {
    /// The proxies.
    ///
    /// # Errors
    /// The key and the expected value.
    pub(in crate::cli) fn proxies(&self) -> Result<Proxies, String> {
        Proxies::new(&self.trusted, &self.client_address).map_err(|why| format!("proxy: {why}"))
    }
}
