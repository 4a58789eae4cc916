//! `bespeak key`: makes, lists and revokes API keys in the store itself, so that it works with the service running or
//! not. Every user that can open the store may do this.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use crate::access::{Access, Error, KeyInfo, Role};
use crate::cli::client::print_json;
use crate::cli::config::Config;
use crate::cli::{self, Failure, StoreOptions, parse_duration, print_rows, row, split_headings};
use crate::clock::{Clock, MICROS_PER_SECOND, Micros, second_of};

const EXAMPLES: &str = "\
Examples:
  bespeak key add --party physics --role consumer --label laptop --expires 30d
  KEY=$(bespeak key add --party physics --role consumer)
  bespeak key list
  bespeak key revoke 019a8d3f-1c1e-7f0a-9b1e-2f6d1c3b4a5d";

/// The longest that a key may be made for, in days: beyond this, one that does not expire says more.
const EXPIRES_DAYS_MAX: i64 = 36_500;

/// Options of `key`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key for a party, and print it. It is shown only once, because it is not stored.
    Add(Add),
    /// List every key that was made, oldest first.
    List(StoreOptions),
    /// Revoke a key and its sessions.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Add {
    /// The party that the key identifies.
    #[arg(long)]
    party: String,
    /// Rights of the key: consumers see their own agreements, operators see all, monitors see /metrics only.
    #[arg(long, value_parser = role_parser())]
    role: Role,
    /// A name for the key.
    #[arg(long)]
    label: Option<String>,
    /// How long it works, such as 90m, 12h or 30d. [default: until it is revoked]
    #[arg(long, value_parser = parse_key_length, value_name = "LENGTH")]
    expires: Option<Micros>,
    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Args)]
struct Revoke {
    /// The key's id, as `key list` shows it.
    id: Uuid,
    #[command(flatten)]
    store: StoreOptions,
}

fn role_parser() -> impl TypedValueParser<Value = Role> {
    let words = PossibleValuesParser::new(Role::ALL.map(Role::word));
    words.try_map(|word| Role::from_word(&word).ok_or("expected a role"))
}

pub(in crate::cli) async fn run(options: Options, as_json: bool) -> Result<(), Failure> {
    let clock = Clock::system();
    match options.action {
        Action::Add(add) => {
            let access = open_keys(&add.store, &clock).await?;
            make_key(&access, add, as_json, &clock).await
        }
        Action::List(store) => {
            let keys = open_keys(&store, &clock).await?.keys().await?;
            print_keys(&keys, as_json, clock.micros());
            Ok(())
        }
        Action::Revoke(Revoke { id, store }) => {
            let revoked = open_keys(&store, &clock).await?.revoke(id).await?;
            if !revoked {
                return Err(Failure::Refused(format!("there is no key {id} that still works")));
            }
            if as_json {
                print_json(&json!({ "id": id, "state": "revoked" }));
            } else {
                say!("revoked {id}");
            }
            Ok(())
        }
    }
}

async fn open_keys(store: &StoreOptions, clock: &Clock) -> Result<Access, Failure> {
    Config::load(store.config.as_deref())?;
    Ok(Access::new(store.open().await?, clock.clone()))
}

async fn make_key(access: &Access, add: Add, as_json: bool, clock: &Clock) -> Result<(), Failure> {
    let expires = add.expires.map(|length| clock.micros().saturating_add(length));
    let key = access
        .add_key(&add.party, add.role, add.label.as_deref(), expires)
        .await
        .map_err(|error| match error {
            Error::Store(error) => error.into(),
            Error::Invalid(what) => Failure::Usage(what),
            other => Failure::Unavailable(other.to_string()),
        })?;
    if as_json {
        print_json(&json!({
            "id": key.id,
            "key": key.secret.expose(),
            "party": add.party,
            "role": add.role.word(),
            "label": add.label,
            "expires": expires.map(instant_in_utc),
        }));
    } else {
        // The key alone on standard output, so that a script can take it.
        say!("{}", key.secret.expose());
        eprintln!(
            "A key of {} as {}, id {}: shown this once.",
            add.party,
            add.role.word(),
            key.id
        );
    }
    Ok(())
}

fn print_keys(keys: &[KeyInfo], as_json: bool, now: Micros) {
    if as_json {
        let one = |key: &KeyInfo| {
            json!({
                "id": key.id,
                "party": key.party,
                "role": key.role.word(),
                "label": key.label,
                "state": key_state(key, now),
                "created": instant_in_utc(key.created),
                "expires": key.expires.map(instant_in_utc),
                "revoked": key.revoked.map(instant_in_utc),
            })
        };
        return print_json(&keys.iter().map(one).collect());
    }
    let mut rows = vec![split_headings("ID, PARTY, ROLE, STATE, CREATED, EXPIRES, LABEL")];
    rows.extend(keys.iter().map(|key| {
        row([
            &key.id,
            &key.party,
            &key.role.word(),
            &key_state(key, now),
            &instant_in_utc(key.created),
            &key.expires.map_or_else(|| "never".to_owned(), instant_in_utc),
            &key.label.as_deref().unwrap_or_default(),
        ])
    }));
    print_rows(rows, &[]);
}

fn key_state(key: &KeyInfo, now: Micros) -> &'static str {
    if key.revoked.is_some() {
        "revoked"
    } else if key.expires.is_some_and(|expires| expires <= now) {
        "expired"
    } else {
        "works"
    }
}

/// An instant to the second, in UTC.
fn instant_in_utc(micros: Micros) -> String {
    cli::instant_in_utc(second_of(micros))
}

/// How long a key works.
fn parse_key_length(text: &str) -> Result<Micros, String> {
    let wrong = || format!("expected a length of time such as 90m, 12h or 30d, at most {EXPIRES_DAYS_MAX}d");
    let seconds = parse_duration(text)
        .ok()
        .and_then(|length| i64::try_from(length).ok());
    seconds
        .filter(|length| *length <= EXPIRES_DAYS_MAX * 86_400)
        .map(|length| length * MICROS_PER_SECOND)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_a_number_and_a_unit() {
        for (text, seconds) in [
            ("1m", 60),
            ("90m", 5_400),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("007d", 604_800),
        ] {
            assert_eq!(parse_key_length(text), Ok(seconds * MICROS_PER_SECOND), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "0d",
            "-1d",
            "+1d",
            "1.5h",
            "1w",
            "1 d",
            "١d",
            "1é",
            "99999d",
            "9223372036854775807d",
            "99999999999999999999m",
        ] {
            assert!(parse_key_length(text).is_err(), "{text:?}");
        }
    }
}
