//! Commands whose options are the members of a request: what is wrong with the request is told by the options.

use reqwest::Method;
use serde_json::Value;

use crate::cli::Failure;
use crate::cli::client::{Server, text_or_empty};

/// The option that says a member of a request.
pub(super) struct OptionOfMember {
    /// The member, or a part of one.
    pub(super) member: &'static str,
    /// The option.
    pub(super) option: &'static str,
    /// Whether the member's name is a word of sentences, too.
    pub(super) is_word: bool,
}

/// Has the faults of a request told by the options that say its members: in place of the pointer to a member, and of its name in a
/// message where that can be nothing else.
fn name_options(told: &mut Value, options: &[OptionOfMember]) {
    let Some(violations) = told.get_mut("violations").and_then(Value::as_array_mut) else {
        return;
    };
    for violation in violations {
        let path = text_or_empty(&violation["path"])
            .trim_start_matches('/')
            .to_owned();
        let is_said = |known: &&OptionOfMember| {
            let below = path.strip_prefix(known.member);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let argument = path.strip_prefix("arguments/").map(str::parse::<usize>);
        if let Some(Ok(nth)) = argument {
            violation["path"] = format!("argument {}", nth + 1).into();
        } else if let Some(known) = options.iter().find(is_said) {
            violation["path"] = known.option.into();
        }
        let names = options.iter().filter(|known| !known.is_word);
        let message = text_or_empty(&violation["message"]).to_owned();
        let message = names.fold(message, |message, known| {
            message.replace(known.member, known.option)
        });
        violation["message"] = message.into();
    }
}

impl Server {
    /// Sends the request that a command makes of its options, and reads the answer. What is wrong with the request is told by these
    /// options, each of which stands beside the member that it says.
    pub(super) async fn post_options(
        &self,
        path: &str,
        value: &Value,
        options: &[OptionOfMember],
    ) -> Result<Value, Failure> {
        let (status, mut body) = self
            .exchange(self.request(Method::POST, path)?.json(value))
            .await?;
        if !self.json
            && let Ok(mut told) = serde_json::from_slice(&body)
        {
            name_options(&mut told, options);
            // An answer that no offer came of has its faults inside.
            if let Some(refusal) = told.get_mut("refusal") {
                name_options(refusal, options);
            }
            body = told.to_string().into_bytes();
        }
        self.read_content(&self.content(status, body)?)
    }
}
