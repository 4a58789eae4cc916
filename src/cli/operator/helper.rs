//! `bespeak cluster helper`: the process with rights beside a service without any.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use execution::slurm::Helping;
use rustix::process::geteuid;
use uuid::Uuid;

use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::serve::{LogFormat, start_log};

const EXAMPLES: &str = "\
Examples:
  bespeak cluster helper --config /etc/bespeak/helper.toml --user bespeak --listen /run/bespeak/helper.sock

Without --listen the standard input is the socket, as systemd passes it on with StandardInput=socket
(deploy/bespeak-helper.service).";

/// Options of `cluster helper`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The configuration with the clusters and the applications (TOML); only the helper's user may write it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The user of the service: the only user that may speak to the helper.
    #[arg(long, value_name = "NAME")]
    user: String,
    /// The socket to make. [default: the standard input]
    #[arg(long, value_name = "PATH")]
    listen: Option<PathBuf>,
    /// Format of the log lines on standard error; `RUST_LOG` chooses the lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

pub(in crate::cli) fn run_cluster_helper(options: &Options) -> Result<(), Failure> {
    start_log(options.log_format);
    check_helper_config(&options.config)?;
    let config = Config::load(Some(&options.config))?;
    let clusters = config.clusters();
    if clusters.is_empty() {
        return Err(Failure::Usage("the configuration has no cluster".to_owned()));
    }
    let user = number_of_helper_user(&options.user)?;
    let unavailable =
        |what: &Path, why: &dyn std::fmt::Display| Failure::Unavailable(format!("{}: {why}", what.display()));
    let folder = helper_folder()?;
    let helping = Helping::new(clusters, config.catalogue()?, user, &folder)
        .map_err(|why| unavailable(&folder, &why))?;
    let listener = match &options.listen {
        Some(path) => listen_for_helper_command(path, user).map_err(|why| unavailable(path, &why))?,
        None => socket_inherited_by_helper_command()
            .map_err(|why| unavailable(Path::new("standard input"), &why))?,
    };
    let served = helping.serve(&listener);
    served.map_err(|why| Failure::Unavailable(format!("nothing can be accepted: {why}")))
}

/// Refuses a configuration that other users can change: with it they could run any program as any user.
fn check_helper_config(config: &Path) -> Result<(), Failure> {
    let path = std::path::absolute(config).map_err(|why| Failure::Usage(why.to_string()))?;
    for checked_path in [Some(path.as_path()), path.parent()].into_iter().flatten() {
        let wrong = |why: String| Failure::Usage(format!("configuration {}: {why}", checked_path.display()));
        let meta = fs::metadata(checked_path).map_err(|why| wrong(why.to_string()))?;
        if meta.uid() != geteuid().as_raw() || meta.permissions().mode() & 0o022 != 0 {
            return Err(wrong(
                "it must belong to the helper's user, and no other user may write to it".to_owned(),
            ));
        }
    }
    Ok(())
}

/// The number of a user.
fn number_of_helper_user(user: &str) -> Result<u32, Failure> {
    let output = Command::new("getent").args(["passwd", user]).output();
    let output = output.map_err(|why| Failure::Unavailable(format!("getent cannot be run: {why}")))?;
    let entry = String::from_utf8_lossy(&output.stdout);
    let number = entry.split(':').nth(2).and_then(|id| id.parse().ok());
    number.ok_or_else(|| Failure::Usage(format!("--user: this machine has no user {user}")))
}

/// A folder for the helper's own files: systemd's where there is one.
fn helper_folder() -> Result<PathBuf, Failure> {
    if let Some(folder) = std::env::var_os("RUNTIME_DIRECTORY") {
        return Ok(folder.into());
    }
    let folder = std::env::temp_dir().join(format!("bespeak-helper-{}", Uuid::now_v7().simple()));
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    made.map_err(|why| Failure::Unavailable(format!("{}: {why}", folder.display())))?;
    Ok(folder)
}

/// A socket at a path that only that user, and root, can connect to. The socket of an earlier helper is replaced.
fn listen_for_helper_command(path: &Path, user: u32) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    // First the mode. Before that, a stranger could connect, but the helper checks the user of each connection in any
    // case.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    chown(path, Some(user), None)?;
    Ok(listener)
}

/// The socket that the standard input is.
fn socket_inherited_by_helper_command() -> std::io::Result<UnixListener> {
    let listener = UnixListener::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    // Fails where it is none.
    listener.local_addr()?;
    listener.set_nonblocking(false)?;
    Ok(listener)
}
