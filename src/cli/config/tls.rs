//! The files for TLS: a certificate chain and its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

use crate::cli::Failure;

/// The files of a certificate.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Tls {
    /// The chain in PEM, the service's own certificate first.
    certificate: PathBuf,
    /// Its private key in PEM.
    key: PathBuf,
}

impl Tls {
    /// The certificates of the chain, in DER.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file and its fault.
    pub(in crate::cli) fn certificates(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let read =
            CertificateDer::pem_file_iter(&self.certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let wrong = |why| Failure::Usage(format!("tls.certificate: {}: {why}", self.certificate.display()));
        let chain = read.map_err(wrong)?;
        Ok(chain.iter().map(|chain| chain.to_vec()).collect())
    }

    /// Reads them.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file and its fault.
    pub(in crate::cli) fn load(&self) -> Result<Arc<ServerConfig>, Failure> {
        let wrong = |key: &str, file: &Path, why: &dyn std::fmt::Display| {
            Failure::Usage(format!("tls.{key}: {}: {why}", file.display()))
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|why| wrong("certificate", &self.certificate, &why))?;
        if chain.is_empty() {
            let why = "a certificate in PEM is expected";
            return Err(wrong("certificate", &self.certificate, &why));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|why| wrong("key", &self.key, &why))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|version| version.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|why| wrong("key", &self.key, &why))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
