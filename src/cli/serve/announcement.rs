//! The announcement of a service that is ready, with commands to try.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;

use tracing::info;

use crate::cli::StoreOptions;
use access::OperatorKey;

/// Prints the address of the service and commands to try, ready to paste.
pub(super) fn announce_service(scheme: &str, address: SocketAddr, key: &OperatorKey, options: &StoreOptions) {
    let file = options.data_dir.join("operator.key");
    let file = file.display();
    let pasted = quote_in_announcement(&file.to_string());
    let mut text = format!("bespeak is listening on {scheme}://{address}\n");
    if key.is_new {
        // What is no terminal may be a log, which others read.
        let shown = std::io::stdout().is_terminal().then(|| key.secret.expose());
        text += &match shown {
            Some(secret) => {
                format!("\nA first operator key, shown this once and kept in {file}:\n  {secret}\n")
            }
            None => format!("\nA first operator key is in {file}.\n"),
        };
    }
    text += &format!(
        "\nTry:\n\
         \x20 KEY=$(cat {pasted})\n\
         \x20 curl -H \"Authorization: Bearer $KEY\" {scheme}://{address}/templates\n\
         \x20 curl -H \"Authorization: Bearer $KEY\" --data-binary @examples/sleep.xml {scheme}://{address}/agreements\n\
         \x20 curl -H \"Authorization: Bearer $KEY\" -H \"Accept: application/json\" {scheme}://{address}/agreements\n\
         \nOr open {scheme}://{address}/portal and sign in with the key.\n"
    );
    // A missing reader of standard output is no reason to stop.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
    info!(%address, "ready");
}

/// A word as a shell takes it, in quotes where it has to be.
fn quote_in_announcement(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_pasted_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(
            quote_in_announcement("bespeak-data/operator.key"),
            "bespeak-data/operator.key"
        );
        assert_eq!(quote_in_announcement("a b/operator.key"), "'a b/operator.key'");
        assert_eq!(quote_in_announcement("it's; rm"), r"'it'\''s; rm'");
    }
}
