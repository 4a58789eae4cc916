//! `bespeak completions` and `bespeak man`: made from the command line as it is read, so that they are never out of date.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::{Failure, build_command_line};

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  bespeak completions bash > /etc/bash_completion.d/bespeak
  bespeak completions zsh > \"${fpath[1]}/_bespeak\"
  bespeak completions fish > ~/.config/fish/completions/bespeak.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  bespeak man | man -l -                       read the first page
  bespeak man /usr/local/share/man/man1        bespeak.1, bespeak-offer.1, …";

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(super) struct CompletionsOptions {
    /// The shell.
    shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(super) struct ManOptions {
    /// A folder for the pages, which is made where there is none. [default: the first page goes to standard output]
    folder: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(super) fn print_completions(options: &CompletionsOptions) {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut build_command_line(), "bespeak", &mut script);
    print_bytes(&script);
}

/// Prints the first page of the manual, or writes all into a folder.
pub(super) fn write_manual(options: &ManOptions) -> Result<(), Failure> {
    let failed = |why: std::io::Error| match &options.folder {
        Some(folder) => Failure::Usage(format!("{}: {why}", folder.display())),
        None => Failure::Usage(why.to_string()),
    };
    if let Some(folder) = &options.folder {
        std::fs::create_dir_all(folder).map_err(failed)?;
        return clap_mangen::generate_to(build_command_line(), folder).map_err(failed);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(build_command_line())
        .render(&mut page)
        .map_err(failed)?;
    print_bytes(&page);
    Ok(())
}

fn print_bytes(bytes: &[u8]) {
    say!("{}", String::from_utf8_lossy(bytes).trim_end());
}
