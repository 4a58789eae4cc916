"""Clients that make offers, negotiate, accept, end agreements, read and have short jobs run, and what must hold at the end."""

import collections
import http.server
import json
import random
import threading
import time
import uuid

from . import fail, wait_for
from .service import DAY, HOLD, ask, clock_time, date_time

# Seconds that a repeated request may go without an answer once the load is over, and that jobs and events may take to end.
PATIENCE = 90
# Agreements of a client that are open: it ends others, so that there are about as many in a long trial as at its beginning.
OPEN_MAX = 100


class Receiver:
    """Takes the events that parties are told."""

    def __init__(self):
        self.lock = threading.Lock()
        # By party, in the order in which they came.
        self.told = collections.defaultdict(list)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                event = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with receiver.lock:
                    receiver.told[self.path.strip("/")].append(event)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                # A replica that was killed has left its connections.
                pass

        server = Quiet(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def faults(self, party, expected):
        """What is wrong with the events of a party that were told, where these are to be told."""
        with self.lock:
            told = list(self.told[party])
        faults = []
        ids = {event["id"] for event in expected}
        seen = {event["id"] for event in told}
        faults += [f"event {each} of {party} was not told" for each in sorted(ids - seen)[:5]]
        faults += [f"event {each} was told to {party} and is none of its events" for each in sorted(seen - ids)[:5]]
        once = collections.defaultdict(set)
        for event in told:
            once[event["cursor"]].add(event["id"])
            if event["type"] in ("agreement.accepted", "agreement.ended"):
                once[event["type"], event["data"]["agreement"]].add(event["id"])
        faults += [f"{party}: {what} was told under the ids {sorted(of)}" for what, of in once.items() if len(of) > 1]
        first = list(dict.fromkeys(event["cursor"] for event in told))
        if first != sorted(first):
            faults.append(f"events were told to {party} out of order")
        return faults


class Client:
    """A party that does this and that, and remembers what it was answered."""

    def __init__(self, service, number, key, seed):
        self.service, self.key = service, key
        self.party = f"client-{number + 1}"
        # The first ones offer all the time: by their answers gaps are seen.
        self.only_offers = number < 2
        self.random = random.Random(f"{seed} {self.party}")
        # By token: the id, the kind, when it was sent first, when it was answered, and how often it was sent.
        self.acknowledged = {}
        # Events after this cursor are told.
        self.cursor = 0
        # Tokens that were sent and have no final answer.
        self.open = {}
        # Those of the acknowledged ones that are no jobs and have not been asked to end.
        self.waiting = []
        self.ended = set()
        self.statuses = collections.Counter()
        self.odd = []
        self.reads = 0
        self.stop = threading.Event()
        self.stopped = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        works = [self.offer, self.negotiate, self.terminate, self.read, self.job]
        weights = [1, 0, 0, 0, 0] if self.only_offers else [4, 2, 2, 4, 1]
        while not self.stop.is_set():
            work = self.terminate if len(self.waiting) > OPEN_MAX else self.random.choices(works, weights)[0]
            work()
            time.sleep(0.02 if self.only_offers else 0.1 * self.random.random())

    def is_out_of_patience(self):
        return self.stop.is_set() and time.monotonic() > self.stopped + PATIENCE

    def end(self):
        self.stopped = time.monotonic()
        self.stop.set()

    def until_answered(self, method, path, body, key, expected):
        """Sends a request again, with the same key, until it is answered. None where that never happens, or not as expected."""
        first, times = time.time(), 0
        while not self.is_out_of_patience():
            sent = time.time()
            status, answer = ask(self.service.address, method, path, self.key, body, key)
            times += 1
            self.statuses[f"{method} {status}{cause_of(status, answer)}"] += 1
            if status == 500 or (0 < status < 500 and status != 429):
                if status not in expected:
                    self.note_odd(method, path, status, answer, sent, times, key)
                if status != 500:
                    return status, answer, (first, sent, time.time(), times)
            time.sleep(0.1)
        self.note_odd(method, path, "no answer", "", first, times, key)
        return None

    def note_odd(self, method, path, status, answer, sent, times, key):
        self.odd.append(
            {
                "sent": sent,
                "answered": time.time(),
                "party": self.party,
                "request": f"{method} {path}",
                "key": key,
                "status": status,
                "times": times,
                "answer": answer[:400],
            }
        )

    def acknowledge(self, token, kind, answered):
        if answered is None:
            return
        status, answer, times = answered
        del self.open[token]
        if status == 201:
            self.acknowledged[token] = (json.loads(answer)["id"], kind, *times)
            if kind != "job":
                self.waiting.append(token)

    def wish(self):
        begins = int(time.time()) + self.random.randrange(1, 300) * DAY
        return {"nodes": 1, "durationSeconds": 60, "window": {"start": date_time(begins), "end": date_time(begins + 10 * DAY)}}

    def token(self, kind):
        token = f"{kind}-{uuid.UUID(int=self.random.getrandbits(128))}"
        self.open[token] = kind
        return token

    def offer(self):
        token = self.token("offer")
        body = self.wish() | {"name": token}
        self.acknowledge(token, "offer", self.until_answered("POST", "/agreements", body, token, {201}))

    def job(self):
        token = self.token("job")
        body = {"nodes": 1, "durationSeconds": 20, "name": token, "application": "mark"}
        body |= {"arguments": [token, str(self.random.randrange(1, 4))], "window": {"end": date_time(time.time() + 900)}}
        self.acknowledge(token, "job", self.until_answered("POST", "/agreements", body, token, {201}))

    def negotiate(self):
        token = self.token("negotiated")
        asked = self.until_answered("POST", "/negotiations", self.wish() | {"name": token}, f"ask {token}", {201})
        if asked is None or asked[0] != 201:
            return
        told = json.loads(asked[1])
        offers = [offer["id"] for offer in told["offers"] if offer["state"] == "Acceptable"]
        if not offers:
            self.note_odd("POST", "/negotiations", 201, asked[1], asked[2][1], 1, token)
            return
        accepted = self.until_answered("POST", "/agreements", {"offer": offers[0]}, token, {201})
        # An offer that is not held any more is refused.
        if accepted and accepted[0] == 409 and time.time() > asked[2][0] + HOLD:
            self.odd.pop()
        self.acknowledge(token, "negotiated", accepted)

    def terminate(self):
        if not self.waiting:
            return
        token = self.waiting.pop(self.random.randrange(len(self.waiting)))
        path = f"/agreements/{self.acknowledged[token][0]}/terminate"
        answered = self.until_answered("POST", path, {"reason": "a trial"}, None, {200, 409})
        if answered is None:
            return
        status, answer, (_, sent, _, times) = answered
        # It has ended already where a request was carried out whose answer was lost.
        if status == 409 and (times == 1 or '"STATE"' not in answer):
            self.note_odd("POST", path, status, answer, sent, times, token)
        else:
            self.ended.add(token)

    def read(self):
        mine = list(self.acknowledged)
        path = "/agreements?limit=20"
        token = None
        if mine and self.random.random() < 0.7:
            token = self.random.choice(mine[-200:])
            path = f"/agreements/{self.acknowledged[token][0]}"
        answered = self.until_answered("GET", path, None, None, {200})
        if answered is None or answered[0] != 200:
            return
        self.reads += 1
        shown = json.loads(answered[1])
        if token and shown["name"] != token:
            self.note_odd("GET", path, 200, answered[1], answered[2][1], 1, token)
        if token and token in self.ended and shown["state"] != "Terminated":
            self.note_odd("GET", path, 200, answered[1], answered[2][1], 1, token)


def cause_of(status, answer):
    """Who says that something is not there: the service by its code, one that starts, or the balancer."""
    if status < 500:
        return ""
    if answer.startswith("{"):
        return f" {json.loads(answer).get('code')}"
    return " starting" if answer.startswith("the plan") else " balancer"


class Load:
    """All clients."""

    def __init__(self, service, keys, receiver, seed):
        self.service, self.receiver = service, receiver
        self.clients = [Client(service, number, key, seed) for number, key in enumerate(keys)]

    def start(self):
        for client in self.clients:
            client.cursor = max((event["cursor"] for event in events_of(self.service, client.key)), default=0)
            path = f"{self.receiver.address}/{client.party}"
            status, answer = ask(self.service.address, "PUT", "/call-backs/trial", client.key, {"address": path})
            if status not in (200, 201):
                fail(f"PUT /call-backs/trial: {status} {answer}")
        for client in self.clients:
            client.thread.start()

    def end(self):
        for client in self.clients:
            client.end()
        for client in self.clients:
            client.thread.join()

    def decisions(self):
        """When requests were sent that became agreements, and when they were answered."""
        each = (list(client.acknowledged.values()) for client in self.clients)
        return [(sent, answered) for of in each for (_, _, _, sent, answered, _) in of]

    def gap(self, since, until):
        times = sorted([since, *(answered for _, answered in self.decisions() if since < answered < until), until])
        return max(later - earlier for earlier, later in zip(times, times[1:]))

    def first_after(self, instant):
        """Seconds until a request was answered that was sent after an instant."""
        return min((answered - instant for sent, answered in self.decisions() if sent > instant), default=None)


def print_statuses(load):
    """How often each was answered."""
    statuses = sum((client.statuses for client in load.clients), collections.Counter())
    print("answers by method and status (0: none): " + ", ".join(f"{what}: {many}" for what, many in sorted(statuses.items())))
    return statuses


def check(service, load, receiver):
    """What is wrong at the end, and how many of each there were."""
    faults = []
    clients = load.clients
    jobs = {of[0]: token for client in clients for token, of in client.acknowledged.items() if of[1] == "job"}

    def all_over():
        states = service.rows("SELECT state FROM agreements WHERE name LIKE 'job-%'")
        return all(row["state"] in ("Complete", "Terminated", "Rejected") for row in states)

    try:
        wait_for("the jobs to end", PATIENCE, all_over)
    except TimeoutError as why:
        faults.append(str(why))
    rows = service.rows("SELECT id, party, name, state, outcome, resource FROM agreements WHERE name ~ '^(offer|job|negotiated)-'")
    by_name = collections.defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    lost = doubled = 0
    for client in clients:
        for token, (identifier, *_) in client.acknowledged.items():
            if identifier not in [row["id"] for row in by_name[token] if row["party"] == client.party]:
                lost += 1
                faults.append(f"lost: {token} of {client.party}, acknowledged as {identifier}")
            elif token in client.ended and by_name[token][0]["state"] != "Terminated":
                faults.append(f"its end is lost: {token}, {identifier} is {by_name[token][0]['state']}")
    for name, of in by_name.items():
        if len(of) > 1:
            doubled += 1
            faults.append(f"doubled: {name} is {', '.join(row['id'] for row in of)}")
    started, ended = collections.Counter(), collections.Counter()
    for line in service.marks.read_text().splitlines():
        word, token = line.split()
        (started if word == "begin" else ended)[token] += 1
    faults += [f"job {token} has started {times} times" for token, times in started.items() if times > 1]
    faults += [f"job {token} has started and not ended" for token in started if not ended[token]]
    for row in rows:
        if row["name"].startswith("job-") and row["state"] == "Complete" and row["outcome"] != "completed":
            faults.append(f"job {row['name']} ({row['id']} on {row['resource']}): {row['outcome']}, started {started[row['name']]} times")
        elif row["id"] in jobs and not started[row["name"]]:
            faults.append(f"job {row['name']} ({row['id']} on {row['resource']}) has not started: {row['state']}, {row['outcome']}")
    faults += check_events(service, clients, receiver)
    for replica in service.replicas:
        status, said = replica.verify()
        print(f"bespeak verify with the folder of {replica.name}: {said}")
        if status != 0:
            faults.append(f"bespeak verify with the folder of {replica.name}: {said[:400]}")
    faults += [f"log of {replica.name}: {line[:300]}" for replica in service.replicas for line in replica.impossible()[:5]]
    told = sum(map(len, receiver.told.values()))
    again = told - sum(len({event["id"] for event in of}) for of in receiver.told.values())
    counts = {
        "acknowledged": sum(len(client.acknowledged) for client in clients),
        "repeated": sum(of[5] > 1 for client in clients for of in client.acknowledged.values()),
        "ended": sum(len(client.ended) for client in clients),
        "reads": sum(client.reads for client in clients),
        "jobs": len(jobs),
        "events": told,
        "events told again": again,
        "lost": lost,
        "doubled": doubled,
    }
    return faults, counts


def check_events(service, clients, receiver):
    faults = []

    def look():
        nonlocal faults
        faults = [fault for client in clients for fault in receiver.faults(client.party, events_of(service, client.key, client.cursor))]
        return not faults

    try:
        wait_for("all events to be told", PATIENCE, look)
    except TimeoutError:
        pass
    return faults


def events_of(service, key, after=0):
    events = []
    while after is not None:
        status, answer = ask(service.address, "GET", f"/events?after={after}&limit=200", key)
        if status != 200:
            raise OSError(f"GET /events: {status}")
        page = json.loads(answer)
        events += page["events"]
        after = page["next"]
    return events


def print_odd(load):
    """Answers that nobody should get."""
    odd = sorted((each for client in load.clients for each in client.odd), key=lambda each: each["sent"])
    for each in odd[:20]:
        print(
            f"  {clock_time(each['sent'])} to {clock_time(each['answered'])}, {each['party']}: {each['request']} (key {each['key']},"
            f" sent {each['times']} times): {each['status']} {each['answer']}"
        )
    return odd
