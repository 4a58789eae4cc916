//! `bespeak key`: makes, lists, revokes and expires API keys. In the store itself, so that it works with the service running or not:
//! every user that can open the store may do this. With `--remote` the service does it. That has to be said: the address of a service
//! also stands in the environment, and a key in the wrong place would be noticed late.

use std::collections::HashMap;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use domain::agreement::Money;
use domain::clock::{Clock, MICROS_PER_SECOND, Micros, second_of};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::client::Server;
use crate::cli::config::Config;
use crate::cli::money::parse_money;
use crate::cli::table::{print_table, row};
use crate::cli::times::parse_duration;
use crate::cli::{self, Failure, StoreOptions};
use access::{Access, KeyLimits, KeyWish, Role};
use api::{KeyView, check_cap_of_key};
use service::MoneyView;

const EXAMPLES: &str = "\
Examples:
  bespeak key add --party physics --role consumer --label laptop --expires 30d
  KEY=$(bespeak key add --party physics --role consumer)
  bespeak key add --party physics --role consumer --read-only
  bespeak key add --party physics --role consumer --spending-cap \"100 EUR\"
  bespeak key list
  bespeak key revoke 019a8d3f-1c1e-7f0a-9b1e-2f6d1c3b4a5d
  bespeak key expire 019a8d3f-1c1e-7f0a-9b1e-2f6d1c3b4a5d 12h
  bespeak key expire 019a8d3f-1c1e-7f0a-9b1e-2f6d1c3b4a5d never
  bespeak key list --remote --server https://bespeak.example.org --key \"$OPERATOR_KEY\"";

/// The longest that a key may be made for, in days: beyond this, one that does not expire says more.
const EXPIRES_DAYS_MAX: i64 = 36_500;

/// Options of `key`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    action: Action,
    /// Ask the service at --server with the operator's key --key, instead of working in the store itself.
    #[arg(long, global = true)]
    remote: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key for a party, and print it. It is shown only once, because it is not stored.
    Add(Add),
    /// List every key that was made, oldest first.
    List(StoreOptions),
    /// Revoke a key and its sessions.
    Revoke(KeyOptions),
    /// Have a key that works expire at another time, or never.
    Expire(Expire),
}

#[derive(Debug, Args)]
struct Add {
    /// The party that the key identifies.
    #[arg(long)]
    party: String,
    /// Rights of the key: consumers see their own agreements, operators see all, monitors see /metrics only.
    #[arg(long, value_parser = key_role_parser())]
    role: Role,
    /// A name for the key.
    #[arg(long)]
    label: Option<String>,
    /// How long it works, such as 90m, 12h or 30d. [default: until it is revoked]
    #[arg(long, value_parser = parse_key_length, value_name = "LENGTH")]
    expires: Option<Micros>,
    /// It may only read: nothing can be changed with it, neither over the API nor on the pages.
    #[arg(long)]
    read_only: bool,
    /// The most that the agreements made with it may cost together, such as "100 EUR".
    #[arg(long, value_parser = parse_money, value_name = "AMOUNT CURRENCY")]
    spending_cap: Option<Money>,
    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Args)]
struct KeyOptions {
    /// The key's id, as `key list` shows it.
    id: Uuid,
    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Args)]
struct Expire {
    #[command(flatten)]
    key: KeyOptions,
    /// How long it works from now on, such as 90m, 12h or 30d; or never.
    #[arg(value_name = "LENGTH", value_parser = parse_key_expiry)]
    expires: Expiry,
}

/// How long a key works; `None` where it does not expire.
#[derive(Debug, Clone, Copy)]
struct Expiry(Option<Micros>);

fn key_role_parser() -> impl TypedValueParser<Value = Role> {
    let words = PossibleValuesParser::new(Role::ALL.map(Role::word));
    words.try_map(|word| Role::from_word(&word).ok_or("expected a role"))
}

pub(in crate::cli) async fn manage_keys(options: Options, server: &Server) -> Result<(), Failure> {
    let clock = Clock::system();
    let is_remote = options.remote;
    let at = |length: Option<Micros>| length.map(|length| clock.micros().saturating_add(length));
    match options.action {
        Action::Add(add) => {
            let wish = KeyWish {
                party: add.party,
                role: add.role,
                label: add.label,
                expires: at(add.expires),
                limits: KeyLimits {
                    read_only: add.read_only,
                    spending_cap: add.spending_cap,
                },
            };
            let made = if is_remote {
                server.post_json("/keys", &request_for_key(&wish)).await?
            } else {
                let config = Config::load(add.store.config.as_deref())?;
                check_cap_of_key(
                    &wish.limits,
                    config.planner().pricing.map(|pricing| pricing.currency),
                )?;
                let made = open_keys(&add.store, &clock).await?.add_key(wish, None).await?;
                let view = KeyView::of(&made.info, clock.micros(), &HashMap::new());
                let key = Some(made.secret.expose().to_owned());
                json!(KeyView { key, ..view })
            };
            server.print_answer(made, print_new_key)
        }
        Action::List(store) => {
            let keys = if is_remote {
                server.get("/keys").await?["keys"].take()
            } else {
                let access = open_keys(&store, &clock).await?;
                let (keys, spent) = (access.keys().await?, access.spent().await?);
                let view = |key| json!(KeyView::of(key, clock.micros(), &spent));
                keys.iter().map(view).collect()
            };
            server.print_answer(keys, |keys: &Vec<KeyView>| print_keys(keys))
        }
        Action::Revoke(KeyOptions { id, store }) => {
            if is_remote {
                server.delete(&format!("/keys/{id}")).await?;
            } else {
                let is_revoked = open_keys(&store, &clock).await?.revoke(id, None).await?;
                is_revoked.then_some(()).ok_or_else(|| no_such_key(id))?;
            }
            let answer = json!({ "id": id, "state": "revoked" });
            server.print_value(&answer, |_| say!("revoked {id}"));
            Ok(())
        }
        Action::Expire(Expire {
            key: KeyOptions { id, store },
            expires,
        }) => {
            let expires = at(expires.0);
            let changed = if is_remote {
                let body = json!({ "expires": expires.map(instant_in_utc) });
                server.put_json(&format!("/keys/{id}/expiry"), &body).await?
            } else {
                let access = open_keys(&store, &clock).await?;
                let is_changed = access.set_expiry(id, expires, None).await?;
                let key = access.key(id).await?.filter(|_| is_changed);
                let key = key.ok_or_else(|| no_such_key(id))?;
                json!(KeyView::of(&key, clock.micros(), &access.spent().await?))
            };
            server.print_answer(changed, |key: &KeyView| print_keys(std::slice::from_ref(key)))
        }
    }
}

async fn open_keys(store: &StoreOptions, clock: &Clock) -> Result<Access, Failure> {
    let config = Config::load(store.config.as_deref())?;
    let access = Access::new(store.open().await?, clock.clone());
    Ok(access.with_operators_for(config.keys.operators_last()))
}

fn no_such_key(id: Uuid) -> Failure {
    Failure::Refused(format!("there is no key {id} that still works"))
}

/// The body that asks the service for a key.
fn request_for_key(wish: &KeyWish) -> Value {
    json!({
        "party": wish.party,
        "role": wish.role.word(),
        "label": wish.label,
        "expires": wish.expires.map(instant_in_utc),
        "readOnly": wish.limits.read_only,
        "spendingCap": wish.limits.spending_cap.map(MoneyView::of),
    })
}

fn print_new_key(view: &KeyView) {
    // The key alone on standard output, so that a script can take it.
    say!("{}", view.key.as_deref().unwrap_or_default());
    eprintln!(
        "A key of {} as {}, id {}: shown this once.",
        view.party, view.role, view.id
    );
}

fn print_keys(keys: &[KeyView]) {
    let rows = keys.iter().map(|key| {
        row([
            &key.id,
            &key.party,
            &key.role,
            &key.state,
            &key.created,
            &key.expires.as_deref().unwrap_or("never"),
            &printed_key_limits(key),
            &key.label.as_deref().unwrap_or_default(),
        ])
    });
    print_table(
        "ID, PARTY, ROLE, STATE, CREATED, EXPIRES, LIMITS, LABEL",
        &[],
        rows,
    );
}

fn printed_key_limits(key: &KeyView) -> String {
    let reads = key.read_only.then(|| "reads only".to_owned());
    let spent = key.spending_cap.as_ref().zip(key.spent.as_ref());
    let spent = spent.map(|(cap, spent)| format!("has spent {} of {cap}", spent.amount));
    let limits: Vec<String> = reads.into_iter().chain(spent).collect();
    limits.join(", ")
}

/// An instant to the second, in UTC.
fn instant_in_utc(micros: Micros) -> String {
    cli::instant_in_utc(second_of(micros))
}

fn parse_key_expiry(text: &str) -> Result<Expiry, String> {
    match text {
        "never" => Ok(Expiry(None)),
        length => parse_key_length(length).map(|length| Expiry(Some(length))),
    }
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
