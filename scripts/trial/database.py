"""PostgreSQL by itself, and members of PostgreSQL under Patroni with deploy/patroni.yml."""

import os
import subprocess
from pathlib import Path

from . import REPOSITORY, fail, free_ports, get_json, server_in, wait_for

PASSWORDS = {"CHANGE-THIS-1": "superuser", "CHANGE-THIS-2": "replication"}

def make_database(processes, folder, programs, is_replicated):
    """A PostgreSQL with an empty database for the service; three members under Patroni where it is replicated."""
    database = Cluster(processes, folder, programs, 3) if is_replicated else Server(processes, folder, programs)
    database.start()
    database.run_sql("CREATE ROLE bespeak LOGIN PASSWORD 'bespeak'")
    database.run_sql("CREATE DATABASE bespeak OWNER bespeak")
    return database


class Member:
    """One member: Patroni with its PostgreSQL."""

    def __init__(self, cluster, number, ports):
        self.cluster, self.number = cluster, number
        self.name = f"database-{number}"
        self.port, self.rest = ports
        self.data = cluster.folder / self.name
        self.configuration = cluster.folder / f"{self.name}.yml"
        self.process = None

    def configure(self):
        """deploy/patroni.yml with the places of this machine."""
        folder = self.cluster.folder
        places = PASSWORDS | {
            "10.0.0.11:2379,10.0.0.12:2379,10.0.0.13:2379": f"127.0.0.1:{self.cluster.etcd_port}",
            "name: database-1": f"name: {self.name}",
            "10.0.0.11:8008": f"127.0.0.1:{self.rest}",
            "10.0.0.11:5432": f"127.0.0.1:{self.port}",
            "10.0.0.0/24": "127.0.0.0/8",
            "/usr/lib/postgresql/15/bin": str(self.cluster.programs),
            "/var/lib/postgresql/15/bespeak": str(self.data),
            "/var/lib/postgresql/.pgpass-patroni": f"{folder}/pgpass-{self.number}",
            "mode: automatic": "mode: off",
            "  pg_hba:\n": f"  parameters:\n    unix_socket_directories: {folder}\n  pg_hba:\n",
        }
        text = (REPOSITORY / "deploy/patroni.yml").read_text()
        for theirs, ours in places.items():
            if theirs not in text:
                fail(f"deploy/patroni.yml has no {theirs!r} any more")
            text = text.replace(theirs, ours)
        if self.cluster.has_old_patroni:
            text = text.replace("\netcd3:\n", "\netcd:\n")
        self.configuration.write_text(text)
        self.configuration.chmod(0o644)

    def start(self):
        self.process = self.cluster.processes.start(self.name, ["patroni", str(self.configuration)])

    def server(self):
        """The number of PostgreSQL's first process; None where it does not run."""
        return server_in(self.data)

    def processes_of_server(self):
        """All processes of PostgreSQL: sessions are groups of their own."""
        first = self.server()
        if first is None:
            return []
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def signal_all(self, what):
        for pid in [self.process.pid, *self.processes_of_server()]:
            try:
                os.kill(pid, what)
            except ProcessLookupError:
                pass


class Cluster:
    """etcd and the members."""

    def __init__(self, processes, folder, programs, members):
        self.processes, self.folder, self.programs = processes, folder, programs
        version = subprocess.run(["patroni", "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
        # See deploy/patroni.yml.
        self.has_old_patroni = tuple(map(int, version.split(".")[:3])) < (3, 0, 3)
        ports = free_ports(2 + 2 * members)
        self.etcd_port, self.peer_port = ports[:2]
        ports = ports[2:]
        self.members = [Member(self, n + 1, ports[2 * n : 2 * n + 2]) for n in range(members)]

    def start(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        etcd = ["etcd", "--name", "one", "--data-dir", str(self.folder / "etcd"), "--initial-cluster", f"one={peer}"]
        etcd += ["--listen-client-urls", client, "--advertise-client-urls", client]
        etcd += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        if self.has_old_patroni:
            etcd.append("--enable-v2")
        self.processes.start("etcd", etcd)
        wait_for("etcd", 30, lambda: get_json(client + "/health"))
        for member in self.members:
            member.configure()
            member.start()
        self.wait_until_whole(120)

    def roles(self):
        """The members by their roles, as the first one tells that answers."""
        for member in self.members:
            try:
                told = get_json(f"http://127.0.0.1:{member.rest}/cluster")["members"]
            except (OSError, ValueError):
                continue
            by_name = {each.name: each for each in self.members}
            return [(each["role"], each["state"], by_name[each["name"]]) for each in told]
        return []

    def primary(self):
        return next((member for role, state, member in self.roles() if role == "leader" and state == "running"), None)

    def wait_until_whole(self, seconds):
        """Waits until all members run, one of them as the primary and one as its synchronous standby, and all others follow it. What a
        member says of itself may be from before it stood still; and a fault while pg_rewind works leaves a member that never comes back."""

        def is_whole():
            running = [(role, member) for role, state, member in self.roles() if state in ("running", "streaming")]
            primary = dict(running).get("leader")
            if len(running) < len(self.members) or not primary or "sync_standby" not in dict(running):
                return False
            follow = "SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming'"
            return int(run_psql(self.programs, primary.port, follow, "postgres")) == len(self.members) - 1

        wait_for("a primary with a synchronous standby", seconds, is_whole)

    def run_sql(self, statement, database="postgres"):
        return run_psql(self.programs, self.primary().port, statement, database)

    def address(self):
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgres://bespeak:bespeak@{hosts}/bespeak?target_session_attrs=read-write"


class Server:
    """PostgreSQL by itself."""

    def __init__(self, processes, folder, programs):
        self.processes, self.folder, self.programs = processes, folder, programs
        (self.port,) = free_ports(1)
        self.data = folder / "database-1"

    def start(self):
        made = [str(self.programs / "initdb"), "-D", str(self.data), "-A", "trust", "-U", "postgres"]
        subprocess.run(made, check=True, capture_output=True, cwd=self.folder, **self.processes.user)
        command = [str(self.programs / "postgres"), "-D", str(self.data), "-p", str(self.port), "-k", str(self.folder)]
        self.processes.start("database-1", command + ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300"])
        wait_for("PostgreSQL", 60, lambda: self.run_sql("SELECT 1"))

    def run_sql(self, statement, database="postgres"):
        return run_psql(self.programs, self.port, statement, database)

    def address(self):
        return f"postgres://bespeak:bespeak@127.0.0.1:{self.port}/bespeak"


def run_psql(programs, port, statement, database):
    """The answer of a statement, or of several; one that fails ends them."""
    environment = os.environ | {"PGPASSWORD": PASSWORDS["CHANGE-THIS-1"]}
    command = [programs / "psql", "-qAt", "-v", "ON_ERROR_STOP=1", f"postgres://postgres@127.0.0.1:{port}/{database}"]
    done = subprocess.run(command, input=statement, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()
