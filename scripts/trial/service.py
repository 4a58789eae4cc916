"""Replicas of the service, behind HAProxy with deploy/haproxy.cfg."""

import concurrent.futures
import http.client
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request

from . import REPOSITORY, fail, free_ports, wait_for

NAMES = ("one", "two", "three")
NODES = 1000
DAY = 86_400
# Seconds for which a counter offer is held.
HOLD = 60
# Seconds until all replicas are ready again after a fault.
RECOVERY = 120
# Words of a panic, and of a plan that cannot be right.
NEVER = ("panicked at", "the plan cannot be right")
CONFIGURATION = """
[limits]
requests = 2048
party_requests = 512
[quotas]
agreements = 0
probes_per_minute = 0
share_percent = 100
[negotiation]
hold_seconds = {hold}
open_max = 100000
holds_max = 1000
[callbacks]
private_addresses = true
[pricing]
currency = "EUR"
node_hour = "3.60"
cancellation_percent = 10
[[application]]
name = "mark"
program = "{folder}/mark"
trusted = true
[[application.argument]]
name = "token"
type = "text"
max_length = 80
[[application.argument]]
name = "seconds"
type = "integer"
min = 0
max = 60
"""
RESOURCE = """
[[resource]]
name = "on-{name}"
kind = "local"
nodes = {nodes}
replica = "{name}"
"""
# A job says in one file when it begins and when it ends.
MARK = """#!/bin/sh
echo "begin $1" >>"{folder}/marks"
sleep "$2"
echo "end $1" >>"{folder}/marks"
"""


def ask(address, method, path, key=None, body=None, idempotency=None, timeout=40):
    """The status and the answer; status 0 where none came."""
    headers = {"accept": "application/json", "content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    if idempotency:
        headers["idempotency-key"] = idempotency
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(address + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        try:
            return answer.code, answer.read().decode()
        except (OSError, http.client.HTTPException) as why:
            return 0, repr(why)
    except (OSError, http.client.HTTPException) as why:
        return 0, repr(why)


class Replica:
    """One process of the service; it is started again whenever it has ended."""

    def __init__(self, service, name, port):
        self.service, self.name = service, name
        self.address = f"http://127.0.0.1:{port}"
        self.data = service.folder / f"data-{name}"
        self.command = [str(service.program), "serve", "--listen", f"127.0.0.1:{port}", "--replica", name]
        self.environment = service.environment | {"BESPEAK_DATA_DIR": str(self.data)}
        self.process = None

    def start(self):
        self.process = self.service.processes.start(self.name, self.command, as_database=False, env=self.environment)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def upgrade(self, program):
        """Ends the process; it is started again with another program."""
        self.command[0] = str(program)
        process = self.process
        process.terminate()
        wait_for("another process", RECOVERY, lambda: self.process is not process)

    def role(self):
        """`leader` or `standby`; none where it is not ready."""
        status, text = ask(self.address, "GET", "/readyz", timeout=1)
        words = (line.removeprefix("role: ") for line in text.splitlines() if line.startswith("role: "))
        return next(words) if status == 200 else None

    def last_words(self):
        lines = (self.service.processes.folder / f"{self.name}.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else ""

    def impossible(self):
        """Lines of its log that no fault excuses."""
        lines = (self.service.processes.folder / f"{self.name}.log").read_text(errors="replace").splitlines()
        return [line for line in lines if any(word in line for word in NEVER)]

    def verify(self):
        done = subprocess.run([self.service.program, "verify"], env=self.environment, capture_output=True, text=True)
        return done.returncode, (done.stdout + done.stderr).strip()


class Service:
    """The replicas, and the balancer in front of them."""

    def __init__(self, processes, folder, program, database):
        self.processes, self.program, self.database = processes, program, database
        self.folder = folder / "service"
        self.folder.mkdir()
        self.marks = self.folder / "marks"
        self.marks.touch()
        mark = self.folder / "mark"
        mark.write_text(MARK.format(folder=self.folder))
        mark.chmod(0o755)
        self.configuration = self.folder / "bespeak.toml"
        self.environment = os.environ | {"BESPEAK_DATABASE_URL": database.address(), "BESPEAK_CONFIG": str(self.configuration)}
        front, *self.ports = free_ports(1 + len(NAMES))
        resources = "".join(RESOURCE.format(name=name, nodes=NODES) for name in NAMES)
        self.configuration.write_text(CONFIGURATION.format(folder=self.folder, hold=HOLD) + resources)
        self.replicas = [Replica(self, name, port) for name, port in zip(NAMES, self.ports)]
        self.address = f"http://127.0.0.1:{front}"
        self.balancer = self.configure_balancer(front, self.ports)
        self.lock = threading.Lock()
        self.endings = []
        self.is_kept = threading.Event()
        threading.Thread(target=self.keep, daemon=True).start()

    def configure_balancer(self, front, ports):
        """deploy/haproxy.cfg with the places of this machine."""
        text = (REPOSITORY / "deploy/haproxy.cfg").read_text()
        names = text[text.index("resolvers containers\n") : text.index("frontend bespeak\n")]
        servers = text[text.index("    server bespeak-1 ") :]
        here = "".join(f"    server {name} 127.0.0.1:{port}\n" for name, port in zip(NAMES, ports))
        places = {names: "", servers: here, " resolvers containers init-addr libc,none": "", "bind :8080": f"bind 127.0.0.1:{front}"}
        for theirs, ours in places.items():
            if theirs not in text:
                fail(f"deploy/haproxy.cfg has no {theirs!r} any more")
            text = text.replace(theirs, ours)
        path = self.folder / "haproxy.cfg"
        path.write_text(text)
        return ["haproxy", "-db", "-f", str(path)]

    def start(self):
        for replica in self.replicas:
            replica.start()
        self.processes.start("haproxy", self.balancer, as_database=False)
        self.is_kept.set()
        self.wait_until_ready(RECOVERY)
        wait_for("the balancer", 30, lambda: ask(self.address, "GET", "/readyz", timeout=2)[0] == 200)

    def keep(self):
        """Starts replicas again that have ended."""
        while True:
            for replica in self.replicas:
                # As one that was told to end by the trial has been waited for, it is none of these.
                if self.is_kept.is_set() and replica.process.poll() is not None:
                    with self.lock:
                        self.endings.append((time.time(), replica.name, replica.process.returncode, replica.last_words()))
                    replica.start()
            time.sleep(0.02)

    def leader(self):
        roles = concurrently(Replica.role, self.replicas)
        return next((replica for replica, role in zip(self.replicas, roles) if role == "leader"), None)

    def wait_until_ready(self, seconds):
        """Waits until each is ready, and one of them leads."""
        wait_for(
            "all replicas to be ready",
            seconds,
            lambda: sorted(map(str, concurrently(Replica.role, self.replicas))) == ["leader", *["standby"] * (len(self.replicas) - 1)],
        )

    def operator_key(self):
        return (self.replicas[0].data / "operator.key").read_text().strip()

    def run_sql(self, statement):
        return self.database.run_sql(statement, "bespeak")

    def rows(self, statement):
        return json.loads(self.run_sql(f"SELECT COALESCE(json_agg(r), '[]') FROM ({statement}) r"))


def concurrently(work, items, many=None):
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(many or max(len(items), 1)) as threads:
        return list(threads.map(work, items))


def make_key(service, number):
    body = {"party": f"client-{number + 1}", "role": "consumer"}
    status, answer = ask(service.address, "POST", "/keys", service.operator_key(), body)
    if status != 201:
        fail(f"POST /keys: {status} {answer}")
    return json.loads(answer)["key"]


def open_agreements(service, many, keys):
    """Agreements in the far future, by all clients."""

    def make(number):
        begins = int(time.time()) + (300 + number % 60) * DAY
        body = {"nodes": 1, "durationSeconds": 600, "name": f"open {number}"}
        body |= {"window": {"start": date_time(begins), "end": date_time(begins + DAY)}}
        status, answer = ask(service.address, "POST", "/agreements", keys[number % len(keys)], body, f"open {number}")
        if status != 201:
            fail(f"POST /agreements: {status} {answer}")

    began = time.monotonic()
    concurrently(make, range(many), len(keys))
    took = time.monotonic() - began
    print(f"{many} open agreements after {took:.1f} s, {many / took:.0f} a second", flush=True)


def date_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def clock_time(instant):
    return time.strftime("%H:%M:%S", time.gmtime(instant)) + f".{int(instant % 1 * 1000):03}"
