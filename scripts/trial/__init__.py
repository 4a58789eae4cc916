"""What the trials on this machine share (scripts/try-replicated-database, scripts/try-replicas, scripts/try-upgrade): processes in a
temporary folder. `database` has PostgreSQL, `service` the replicas, `load` their clients."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def fail(why):
    sys.exit(f"scripts/{Path(sys.argv[0]).name}: {why}")


def need_patroni():
    for program in ("etcd", "patroni", "patronictl"):
        if not shutil.which(program):
            fail("please install patroni, etcd-server and python3-etcd, then run this again.")


def programs_of_postgres():
    """The folder with the programs of the newest PostgreSQL."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if not programs:
        fail("please install postgresql, then run this again.")
    return Path(programs[-1])


def program_of(path):
    if not path.exists():
        fail(f"there is no {path}: cargo build")
    return path.resolve()


def free_ports(many):
    """Ports that are free at this moment."""
    sockets = [socket.socket() for _ in range(many)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(what, seconds, look):
    """The first value of look() that is true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            found = look()
        except (OSError, ValueError, subprocess.CalledProcessError):
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"waited {seconds} s for {what}, in vain")


def get_json(url, timeout=2):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return json.load(answer)


def server_in(data):
    """The number of the first process of the PostgreSQL on a folder; None where it does not run."""
    try:
        pid = int((data / "postmaster.pid").read_text().split()[0])
        # The number may be another process's by now.
        return pid if os.readlink(f"/proc/{pid}/cwd") == str(data) else None
    except (OSError, ValueError, IndexError):
        return None


class Processes:
    """Started processes, each the leader of a group of its own, and the user of the database's."""

    def __init__(self, folder):
        self.folder = folder
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        self.all = []

    def start(self, name, command, as_database=True, **options):
        if as_database:
            options |= self.user
        log = open(self.folder / f"{name}.log", "ab")
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.folder, **options
        )
        log.close()
        self.all.append(process)
        return process

    def end_all(self):
        for process in reversed(self.all):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def run_trial(trial, keep):
    """Runs a trial in a temporary folder, and ends the program: with 0 where it is passed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="bespeak-trial-"))
    folder.chmod(0o755)
    processes = Processes(folder)
    if processes.user:
        shutil.chown(folder, "postgres", "postgres")
    is_passed = False
    try:
        is_passed = trial(processes, folder)
    except TimeoutError as why:
        print(f"scripts/{Path(sys.argv[0]).name}: {why}", file=sys.stderr)
    except subprocess.CalledProcessError as why:
        print(f"scripts/{Path(sys.argv[0]).name}: {why}: {why.stderr}", file=sys.stderr)
    finally:
        clear_up(processes, folder, keep or not is_passed)
    sys.exit(0 if is_passed else 1)


def clear_up(processes, folder, keep):
    """Ends every process, those of PostgreSQL too, which Patroni leaves behind."""
    processes.end_all()
    for pid in filter(None, map(server_in, folder.glob("database-[0-9]"))):
        for what in (signal.SIGCONT, signal.SIGKILL):
            os.kill(pid, what)
    if keep:
        print(f"the logs are kept in {folder}", file=sys.stderr)
    else:
        time.sleep(0.5)
        shutil.rmtree(folder, ignore_errors=True)
