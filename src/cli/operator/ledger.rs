//! `bespeak ledger`.

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{Query, Server, parse_limit_option, read_answer};
use crate::cli::table::{print_rows, row};
use service::AccountsView;

const EXAMPLES: &str = "\
Examples:
  bespeak ledger
  bespeak ledger --party physics --limit 0     all entries of one party (operators)";

/// Options of `ledger`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// How many entries to list; 0 lists all.
    #[arg(long, default_value_t = 50, value_parser = parse_limit_option)]
    limit: usize,
    /// Only the account of this party.
    #[arg(long, value_name = "NAME")]
    party: Option<String>,
}

pub(in crate::cli) async fn show_ledger(options: Options, server: &Server) -> Result<(), Failure> {
    let Query(first) = Query::new("/accounts").with("party", options.party);
    let mut ledger: AccountsView = read_answer(server.get(&first).await?)?;
    while let Some(after) = ledger.next.filter(|_| ledger.entries.len() < options.limit) {
        let page: AccountsView = read_answer(server.get(&format!("{first}after={after}")).await?)?;
        ledger.entries.extend(page.entries);
        ledger.next = page.next;
    }
    ledger.entries.truncate(options.limit);
    server.print_value(&ledger, print_ledger);
    Ok(())
}

fn print_ledger(ledger: &AccountsView) {
    let balances = ledger
        .accounts
        .iter()
        .map(|account| row([&account.account, &account.balance]));
    print_rows(balances.collect(), &[1]);
    if ledger.accounts.is_empty() {
        say!("nothing was posted");
        return;
    }
    say!("");
    let entries = ledger.entries.iter().map(|entry| {
        row([
            &entry.at,
            &entry.kind,
            &entry.amount,
            &entry.account,
            &entry.agreement,
            &entry.detail,
        ])
    });
    print_rows(entries.collect(), &[2]);
}
