//! The file descriptors of the service: as many as the system allows, shared between connections and the promised work. A
//! client without a key may take connections; it never takes the descriptors that jobs, the store and files need.

use execution::job::limits::raise_open_files_limit;

use crate::cli::Failure;
use crate::cli::config::limits::ConfigLimits;
use api::Connections;

/// The standard streams, the listener, the runtime's own descriptors, signals, and files that libraries open for a
/// moment.
const OF_PROCESS: u64 = 32;
/// Six connections to a SQLite file, each with the file and its log, the index that they share, journals, and the locks; or
/// nine to Postgres and the replacements of broken ones.
const OF_STORE: u64 = 32;
/// Sixteen calls to the executor of local jobs at a time, with two or three files each.
const OF_JOBS: u64 = 48;
/// Sixteen calls to the executor of a cluster, with two pipes and a process each, and its records.
const OF_CLUSTER: u64 = 128;
/// A walk through the folder of a job holds 32 levels open, and its list.
const OF_FOLDERS: u64 = 36;
/// Thirty-two decisions are told at the same time.
const OF_CALL_BACKS: u64 = 32;
/// A connection, and the file that its request writes or reads.
const OF_CONNECTION: u64 = 2;

/// Connections where the configuration does not say and the system allows them.
const CONNECTIONS: usize = 4_096;
/// With fewer a service is of no use: the pages alone take some.
const CONNECTIONS_LEAST: usize = 8;
/// One address has at most this part of the connections (one divided by this), where the configuration does not say: a proxy
/// in front of the service has enough for twice the requests that are worked on, and three addresses more are needed to take
/// them all.
const ADDRESS_SHARE: usize = 4;

/// Raises the limit of open files of this process as far as the system allows. Returns the number of connections that
/// this leaves room for.
///
/// # Errors
/// [`Failure::Usage`] with the key, where the configuration asks for more connections than fit, or where next to none do.
pub(in crate::cli) fn share_descriptors(
    limits: &ConfigLimits,
    clusters: usize,
) -> Result<Connections, Failure> {
    let allowed = raise_open_files_limit().unwrap_or(u64::MAX);
    share_out_descriptors(limits, clusters, allowed)
}

fn share_out_descriptors(
    limits: &ConfigLimits,
    clusters: usize,
    allowed: u64,
) -> Result<Connections, Failure> {
    let reserve = OF_PROCESS + OF_STORE + OF_JOBS + OF_CLUSTER * clusters as u64 + OF_FOLDERS + OF_CALL_BACKS;
    let fit = allowed.saturating_sub(reserve) / OF_CONNECTION;
    let fit = usize::try_from(fit).unwrap_or(usize::MAX);
    let how =
        "raise the hard limit of open files (LimitNOFILE= of a systemd service, `ulimit -Hn` of a shell)";
    if fit < CONNECTIONS_LEAST {
        let least = reserve + OF_CONNECTION * CONNECTIONS_LEAST as u64;
        return Err(Failure::Usage(format!(
            "the system allows this process {allowed} open files, and the service needs {least}: {how}"
        )));
    }
    let most = match limits.connections {
        Some(asked) if asked > fit => {
            return Err(Failure::Usage(format!(
                "configuration: limits.connections: {asked} connections do not fit in the {allowed} open files that the \
                 system allows, of which {reserve} are kept for the store, jobs and files and each connection takes \
                 {OF_CONNECTION}; ask for at most {fit}, or {how}"
            )));
        }
        Some(asked) => asked,
        None => CONNECTIONS.min(fit),
    };
    if limits.connections.is_none() && most < CONNECTIONS {
        tracing::warn!(
            connections = most,
            open_files = allowed,
            "fewer connections than usual: {how}"
        );
    }
    let of_each = limits.connections_per_address;
    let of_each = of_each.unwrap_or_else(|| (most / ADDRESS_SHARE).max(1));
    Ok(Connections::new(most, of_each))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(connections: Option<usize>) -> ConfigLimits {
        ConfigLimits {
            connections,
            ..ConfigLimits::default()
        }
    }

    fn most(connections: Option<usize>, clusters: usize, allowed: u64) -> Result<usize, String> {
        let shared = share_out_descriptors(&asking(connections), clusters, allowed);
        shared.map(|shared| shared.most()).map_err(|why| why.to_string())
    }

    #[test]
    fn the_default_is_what_fits_and_a_configuration_that_does_not_fit_is_refused() {
        assert_eq!(most(None, 0, 1 << 20), Ok(4_096));
        assert_eq!(most(None, 0, 1_024), Ok((1_024 - 180) / 2));
        assert_eq!(most(None, 1, 1_024), Ok((1_024 - 308) / 2));
        assert_eq!(most(Some(10_000), 0, 1 << 20), Ok(10_000));
        assert_eq!(most(Some(422), 0, 1_024), Ok(422));
        let why = most(Some(423), 0, 1_024).unwrap_err();
        for named in ["limits.connections", "423", "at most 422", "1024", "LimitNOFILE="] {
            assert!(why.contains(named), "{named} is not named: {why}");
        }
        let why = most(None, 0, 195).unwrap_err();
        assert!(why.contains("195") && why.contains("196"), "{why}");
        assert_eq!(most(None, 0, 196), Ok(8));
    }
}
