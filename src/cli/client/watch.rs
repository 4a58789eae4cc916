//! `bespeak watch ID`.

use std::time::Duration;

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{IdStart, Server, print_agreement, print_json, read};
use crate::negotiation::{AgreementView, TimelineView};

/// How often the service is asked.
const INTERVAL: Duration = Duration::from_millis(500);

/// Options of `watch`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status 0 when the agreement ends Complete, 1 when it ends otherwise.")]
pub(in crate::cli) struct Options {
    /// The agreement: its id, or as many first digits as no other has.
    id: IdStart,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let id = options.server.id_of(&options.id).await?;
    let mut printed = 0;
    loop {
        let answer = options.server.agreement(id).await?;
        let view: AgreementView = read(answer.clone())?;
        if !options.server.json {
            let timeline = options.server.timeline(id).await?;
            let events = read::<TimelineView>(timeline)?.events;
            for event in events.iter().skip(printed) {
                say!("{:<26} {:<12} {}", event.at, event.kind, event.detail);
            }
            printed = events.len();
        }
        if matches!(view.state.as_str(), "Complete" | "Terminated" | "Rejected") {
            if options.server.json {
                print_json(&answer);
            } else {
                say!("");
                print_agreement(&view);
            }
            return match view.state.as_str() {
                "Complete" => Ok(()),
                other => Err(Failure::Refused(format!("the agreement is {other}"))),
            };
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
