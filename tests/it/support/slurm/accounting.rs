//! slurmdbd on a database of its own, for a test cluster with associations and limits.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;

use super::{DEADLINE, daemon, ended, output_of, poll_until};

/// The database of slurmdbd.
const DATABASE: &str = "slurm_acct_db";

/// The parts of accounting: the database's server, and slurmdbd.
#[derive(Debug)]
pub(super) struct Accounting {
    daemons: Vec<Child>,
}

impl Accounting {
    /// Starts accounting in a cluster's folder, where munged runs already. The database is reached by a socket in that folder
    /// only, slurmdbd by a port of the loopback interface.
    ///
    /// # Errors
    /// When slurmdbd does not come up; its log says why.
    pub(super) fn start(folder: &Path, port: u16, host: &str, user: &str) -> Result<Self, String> {
        let (data, socket) = (folder.join("mariadb"), folder.join("mariadb.sock"));
        let log = |name: &str| File::create(folder.join(name)).expect("a log can be written");
        let data_option = format!("--datadir={}", data.display());
        // A server that root starts wants a user's name.
        let named = rustix::process::geteuid().is_root().then_some("--user=root");
        let mut install = daemon("mariadb-install-db", folder);
        install
            .args([
                "--no-defaults",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ])
            .arg(&data_option)
            .args(named);
        let made = output_of(&mut install, DEADLINE);
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stdout).into_owned());
        }
        // slurmdbd would make it, too. Then recent versions of the database's library forget their settings on the way.
        let init = folder.join("mariadb.sql");
        fs::write(&init, format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n")).expect("a file");
        let server = daemon("mariadbd", folder)
            .args([
                "--no-defaults",
                "--skip-networking",
                "--innodb-buffer-pool-size=16M",
            ])
            .args([
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-lock-wait-timeout=900",
            ])
            .args([data_option, format!("--socket={}", socket.display())])
            .arg(format!("--init-file={}", init.display()))
            .arg(format!("--pid-file={}", folder.join("mariadb.pid").display()))
            .args(named)
            .stderr(log("mariadb.log"))
            .spawn();
        let mut accounting = Self {
            daemons: vec![server.expect("mariadbd can be run")],
        };
        if !poll_until(DEADLINE, || socket.exists() || accounting.has_ended()) || !socket.exists() {
            return Err("mariadbd did not start".to_owned());
        }
        let configuration = folder.join("slurmdbd.conf");
        fs::write(&configuration, configured(folder, port, host, user)).expect("a file");
        fs::set_permissions(&configuration, Permissions::from_mode(0o600)).expect("one's file can be closed");
        let slurmdbd = daemon("slurmdbd", folder)
            .arg("-D")
            // slurmdbd has no key for it.
            .env("MYSQL_UNIX_PORT", &socket)
            .spawn();
        accounting.daemons.push(slurmdbd.expect("slurmdbd can be run"));
        let answers = || {
            let mut asked = daemon("sacctmgr", folder);
            let asked = output_of(asked.args(["-n", "show", "qos"]), DEADLINE);
            asked.status.success()
        };
        let is_up = poll_until(DEADLINE, || answers() || accounting.has_ended());
        if is_up && !accounting.has_ended() {
            Ok(accounting)
        } else {
            Err("slurmdbd did not start".to_owned())
        }
    }

    fn has_ended(&mut self) -> bool {
        self.daemons.iter_mut().any(ended)
    }

    /// Waits for the ends of the daemons, which have been killed.
    pub(super) fn wait(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.wait();
        }
    }
}

/// The text of slurmdbd.conf.
fn configured(folder: &Path, port: u16, host: &str, user: &str) -> String {
    let dir = folder.display();
    format!(
        "AuthType=auth/munge\nAuthInfo=socket={dir}/munge.sock\nDbdHost={host}\nDbdAddr=127.0.0.1\nDbdPort={port}\n\
         SlurmUser={user}\nLogFile={dir}/slurmdbd.log\nPidFile={dir}/slurmdbd.pid\nCommunicationParameters=NoInAddrAny\n\
         StorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=root\nStorageLoc={DATABASE}\n"
    )
}
