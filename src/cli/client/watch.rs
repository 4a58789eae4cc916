//! `bespeak watch ID`.

use std::time::Duration;

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{IdOrName, Server, print_agreement, print_json, read_answer};
use crate::service::{AgreementView, TimelineView};

/// How often the service is asked.
const INTERVAL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  bespeak watch 01a1fc5d835f
  bespeak watch nightly --json                 print the agreement when it has ended

Exit status 0 when the agreement ends Complete, 1 when it ends otherwise.";

/// Options of `watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The agreement: its id, as many first digits as no other has, or its name.
    id: IdOrName,
}

pub(in crate::cli) async fn run(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.id).await?;
    let mut printed = 0;
    loop {
        let answer = server.agreement(id).await?;
        let view: AgreementView = read_answer(answer.clone())?;
        if !server.json {
            let timeline = server.timeline(id).await?;
            let events = read_answer::<TimelineView>(timeline)?.events;
            for event in events.iter().skip(printed) {
                say!("{:<26} {:<12} {}", event.at, event.kind, event.detail);
            }
            printed = events.len();
        }
        if matches!(view.state.as_str(), "Complete" | "Terminated" | "Rejected") {
            if server.json {
                print_json(&answer);
            } else {
                say!("");
                print_agreement(&view);
            }
            return match view.state.as_str() {
                "Complete" => Ok(()),
                // As JSON it has been told.
                _ if server.json => Err(Failure::Refused(String::new())),
                other => Err(Failure::Refused(format!("the agreement is {other}"))),
            };
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
