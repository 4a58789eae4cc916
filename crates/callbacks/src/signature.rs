//! Signatures of calls as Standard Webhooks 1.0.0 has them (section "Verifying webhook authenticity", symmetric): HMAC-SHA256 over
//! the id, the time and the body, joined by full stops.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The beginning of every secret.
const PREFIX: &str = "whsec_";
/// Random bytes of a secret: between the 24 and the 64 of the specification.
const BYTES: usize = 32;

/// A new secret.
///
/// # Errors
/// Where the operating system has no randomness.
pub fn new_signing_secret() -> Result<String, getrandom::Error> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random)?;
    Ok(format!("{PREFIX}{}", BASE64_STANDARD.encode(random)))
}

/// The value of `webhook-signature` for a message that is sent at a second; none where the secret is none of [`new_signing_secret`].
pub(super) fn sign_message(secret: &str, id: &str, second: i64, body: &str) -> Option<String> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{second}.{body}").as_bytes());
    Some(format!(
        "v1,{}",
        BASE64_STANDARD.encode(mac.finalize().into_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_the_specification_shows() {
        // The test vector of the reference implementations.
        let signed = sign_message(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(
            signed.as_deref(),
            Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        );
        assert_eq!(sign_message("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a", 0, ""), None);
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        let [one, two] = [(); 2].map(|()| new_signing_secret().expect("randomness"));
        assert_ne!(one, two);
        assert!(sign_message(&one, "a", 0, "").is_some());
    }
}
