-- The schema. Postgres and SQLite both take this text, so it keeps to what they share:
--   BIGINT for every number and time, the unit last in the column's name (_s planned in seconds, _us happened, in
--   microseconds since the Unix epoch); TEXT for JSON, so that a document comes back as it went in; UUID, which
--   Postgres knows as a type and SQLite keeps as the sixteen bytes.
-- Until the first release a change of the schema is made here. A migration that has been released is never edited: its
-- checksum is stored, and a store that differs is refused.

-- RESOURCES

-- What is planned on. Resources come, change and go while the service serves, by its operators as by its configuration.
CREATE TABLE resources (
    name       TEXT   NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL,
    capacity   BIGINT NOT NULL CHECK (capacity >= 0),
    -- Ties among resources go to the lower one.
    position   BIGINT NOT NULL,
    -- How fast its nodes work, in millionths of the reference.
    rate       BIGINT NOT NULL CHECK (rate > 0),
    -- Attributes, names of nodes, maintenance, and what its executor needs: JSON.
    details    TEXT   NOT NULL,
    -- The resource as the configuration file had it when the file was last read, as JSON: only what has changed there since is
    -- taken over. Null where the file did not have it.
    configured TEXT,
    -- Since when nothing new is placed on it.
    retired_us BIGINT,
    -- The same by an operator's word, while what is agreed stays there.
    frozen_us  BIGINT
);

-- What a resource had since when: what was promised last year is judged by what there was last year.
CREATE TABLE capacities (
    resource TEXT   NOT NULL REFERENCES resources (name),
    since_us BIGINT NOT NULL,
    capacity BIGINT NOT NULL CHECK (capacity >= 0),
    PRIMARY KEY (resource, since_us)
);

-- How nodes stand that are not up, by who says so, and why.
CREATE TABLE node_states (
    resource TEXT   NOT NULL,
    node     BIGINT NOT NULL,
    reporter TEXT   NOT NULL,
    state    TEXT   NOT NULL,
    since_us BIGINT NOT NULL,
    reason   TEXT,
    PRIMARY KEY (resource, node, reporter)
);

-- The replica on whose machine a local resource is.
CREATE TABLE resource_hosts (
    resource TEXT NOT NULL PRIMARY KEY,
    replica  TEXT NOT NULL
);

-- AGREEMENTS

CREATE TABLE agreements (
    id              UUID   NOT NULL PRIMARY KEY,
    party           TEXT   NOT NULL,
    name            TEXT,
    -- The AgreementId of its offer: unique for a party, except that what takes an agreement's place may keep it.
    initiator_id    TEXT,
    -- Under which agreement's id its work is known outside, where it has taken that over while it ran: that of the first in their
    -- row. Null for its own.
    origin          UUID   REFERENCES agreements (id),
    template        TEXT   NOT NULL,
    resource        TEXT   NOT NULL REFERENCES resources (name),
    nodes           BIGINT NOT NULL CHECK (nodes > 0),
    duration_s      BIGINT NOT NULL CHECK (duration_s > 0),
    ready_s         BIGINT NOT NULL,
    deadline_s      BIGINT NOT NULL,
    planned_start_s BIGINT NOT NULL,
    planned_end_s   BIGINT NOT NULL CHECK (planned_end_s >= planned_start_s),
    -- The pieces in which its work is done, as JSON in order of time; an empty list where it is done in one.
    pieces          TEXT   NOT NULL,
    -- 1 when the placement moves no more, else 0.
    fixed           BIGINT NOT NULL CHECK (fixed IN (0, 1)),
    -- What it may have other than what it got, as JSON: sizes with their durations, and what its nodes must be.
    leeway          TEXT   NOT NULL,
    -- What was chosen of an offer that left a choice: a list of JSON.
    choices         TEXT   NOT NULL,
    job             TEXT,
    guarantees      TEXT   NOT NULL,
    -- What it costs, in millionths of a currency; null where nothing is priced.
    price_micros    BIGINT,
    price_currency  TEXT,
    state           TEXT   NOT NULL,
    service         TEXT   NOT NULL,
    started_us      BIGINT,
    ended_us        BIGINT,
    outcome         TEXT,
    exit_status     BIGINT,
    created_us      BIGINT NOT NULL,
    version         BIGINT NOT NULL CHECK (version > 0)
);
-- A restart reads what is not final, however long the history has grown, and looks after what may still run of work that was lost.
CREATE INDEX agreements_live ON agreements (id) WHERE state NOT IN ('Rejected', 'Complete', 'Terminated');
CREATE INDEX agreements_lost ON agreements (ended_us) WHERE outcome = 'lost';
CREATE INDEX agreements_by_party ON agreements (party, id);
-- Lists of one state or one name, newest first, pass over no others.
CREATE INDEX agreements_by_state ON agreements (state, id);
CREATE INDEX agreements_by_party_and_state ON agreements (party, state, id);
CREATE INDEX agreements_by_name ON agreements (name, id) WHERE name IS NOT NULL;
CREATE INDEX agreements_by_party_and_name ON agreements (party, name, id) WHERE name IS NOT NULL;
CREATE INDEX agreements_by_initiator_id ON agreements (initiator_id, party, id) WHERE initiator_id IS NOT NULL;
CREATE INDEX agreements_processing ON agreements (id) WHERE service = 'Processing';
-- What goes on with the work of another.
CREATE INDEX agreements_by_origin ON agreements (origin) WHERE origin IS NOT NULL;
-- Those that are not over, by start: all of them, and those of a party.
CREATE INDEX agreements_coming ON agreements (planned_start_s, id) WHERE state NOT IN ('Rejected', 'Complete', 'Terminated');
CREATE INDEX agreements_coming_of ON agreements (party, planned_start_s, id)
    WHERE state NOT IN ('Rejected', 'Complete', 'Terminated');
-- Those of them that have begun, in the same ways. The state is an expression, so that SQLite does not take the indexes before for them.
CREATE INDEX agreements_running ON agreements (planned_start_s, id)
    WHERE service <> 'NotReady' AND state || '' NOT IN ('Rejected', 'Complete', 'Terminated');
CREATE INDEX agreements_running_of ON agreements (party, planned_start_s, id)
    WHERE service <> 'NotReady' AND state || '' NOT IN ('Rejected', 'Complete', 'Terminated');
-- Those that are over, by start: all of them, and those of a party. The state is an expression, so that SQLite does not take the index
-- by state for them.
CREATE INDEX agreements_past ON agreements (planned_start_s, id) WHERE state || '' IN ('Rejected', 'Complete', 'Terminated');
CREATE INDEX agreements_past_of ON agreements (party, planned_start_s, id)
    WHERE state || '' IN ('Rejected', 'Complete', 'Terminated');

-- Templates as they were when offers were made from them, each once, as JSON. The id is the beginning of the text's SHA-256.
CREATE TABLE template_versions (
    id       UUID NOT NULL PRIMARY KEY,
    document TEXT NOT NULL
);

-- The accepted offer as JSON, apart from the row that every read touches, with its context and its terms verbatim where it came as a
-- document. One that came as a flat request is kept as that, with the template that says what it leaves out, which is null elsewhere.
CREATE TABLE agreement_documents (
    agreement UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    document  TEXT NOT NULL,
    template  UUID REFERENCES template_versions (id)
);

-- Moves of many agreements at once, which no row of these has yet: each agreement is where the latest of its moves says. A record goes
-- when all its agreements have rows that say so, or later moves.
CREATE TABLE moves (
    number BIGINT NOT NULL PRIMARY KEY,
    at_us  BIGINT NOT NULL,
    -- The agreement that they made room for.
    cause  UUID,
    why    TEXT   NOT NULL,
    -- A list of JSON: of each agreement its id, its version after the move, and its planned start in seconds.
    moves  TEXT   NOT NULL
);

-- The timeline. Each line bears the version that the agreement had after the change, and its states then, so that the
-- moves between states can be checked afterwards. Number and hash are those of the audit trail.
CREATE TABLE events (
    agreement UUID   NOT NULL REFERENCES agreements (id),
    seq       BIGINT NOT NULL CHECK (seq > 0),
    at_us     BIGINT NOT NULL,
    kind      TEXT   NOT NULL,
    detail    TEXT   NOT NULL,
    version   BIGINT NOT NULL,
    state     TEXT   NOT NULL,
    service   TEXT   NOT NULL,
    number    BIGINT NOT NULL UNIQUE,
    hash      TEXT   NOT NULL,
    -- The digest of the agreement's row after the change, and the sums of the lease's row where they are others than before.
    digest    UUID,
    sums      TEXT,
    PRIMARY KEY (agreement, seq)
);

-- Which nodes an agreement has, from when its slot begins.
CREATE TABLE node_bindings (
    resource  TEXT   NOT NULL REFERENCES resources (name),
    node      BIGINT NOT NULL CHECK (node >= 0),
    start_s   BIGINT NOT NULL,
    end_s     BIGINT NOT NULL CHECK (end_s > start_s),
    agreement UUID   NOT NULL REFERENCES agreements (id),
    PRIMARY KEY (resource, node, start_s)
);
CREATE INDEX node_bindings_by_agreement ON node_bindings (agreement);
-- A start reads the bindings that end in the future; without this index it would read all of them.
CREATE INDEX node_bindings_by_end ON node_bindings (end_s);

-- Which agreement took the place of which: of each at most one.
CREATE TABLE successions (
    old UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    new UUID NOT NULL UNIQUE REFERENCES agreements (id)
);

-- The agreements that peers carry out: each with the address of the peer's agreement behind it, once that is known to be made, and
-- the key under which it was asked for.
CREATE TABLE peer_agreements (
    id               UUID   NOT NULL PRIMARY KEY,
    agreement        UUID   NOT NULL REFERENCES agreements (id),
    peer             TEXT   NOT NULL,
    address          TEXT,
    -- The peer's offer that it is made of, until then, as JSON.
    intent           TEXT,
    price_micros     BIGINT,
    price_currency   TEXT,
    made_us          BIGINT NOT NULL,
    -- As it was last seen there.
    state            TEXT   NOT NULL,
    charged_micros   BIGINT NOT NULL CHECK (charged_micros >= 0),
    paid_back_micros BIGINT NOT NULL CHECK (paid_back_micros >= 0),
    lost             BIGINT NOT NULL CHECK (lost IN (0, 1)),
    -- Names and states of its guarantees as they were last seen there, as JSON.
    guarantees       TEXT   NOT NULL,
    -- When it was over there and its money was posted.
    settled_us       BIGINT
);
CREATE INDEX peer_agreements_open ON peer_agreements (id) WHERE settled_us IS NULL;
CREATE INDEX peer_agreements_of ON peer_agreements (peer, id);
CREATE INDEX peer_agreements_behind ON peer_agreements (agreement, id);

-- THE ARCHIVE

-- Timelines, bound nodes and documents of agreements that ended long ago, in tables that no decision reads or writes. So the
-- tables above do not grow with the years. The views join both.
CREATE TABLE archived_documents (
    agreement UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    document  TEXT NOT NULL,
    template  UUID REFERENCES template_versions (id)
);

CREATE TABLE archived_events (
    agreement UUID   NOT NULL REFERENCES agreements (id),
    seq       BIGINT NOT NULL CHECK (seq > 0),
    at_us     BIGINT NOT NULL,
    kind      TEXT   NOT NULL,
    detail    TEXT   NOT NULL,
    version   BIGINT NOT NULL,
    state     TEXT   NOT NULL,
    service   TEXT   NOT NULL,
    number    BIGINT NOT NULL UNIQUE,
    hash      TEXT   NOT NULL,
    -- The digest of the agreement's row after the change, and the sums of the lease's row where they are others than before.
    digest    UUID,
    sums      TEXT,
    PRIMARY KEY (agreement, seq)
);
CREATE VIEW all_events AS
    SELECT agreement, seq, at_us, kind, detail, version, state, service, number, hash, digest, sums FROM events UNION ALL
    SELECT agreement, seq, at_us, kind, detail, version, state, service, number, hash, digest, sums FROM archived_events;

CREATE TABLE archived_bindings (
    resource  TEXT   NOT NULL REFERENCES resources (name),
    node      BIGINT NOT NULL CHECK (node >= 0),
    start_s   BIGINT NOT NULL,
    end_s     BIGINT NOT NULL CHECK (end_s > start_s),
    agreement UUID   NOT NULL REFERENCES agreements (id),
    PRIMARY KEY (resource, node, start_s)
);
CREATE INDEX archived_bindings_by_agreement ON archived_bindings (agreement);
CREATE VIEW all_bindings AS
    SELECT resource, node, start_s, end_s, agreement FROM node_bindings UNION ALL
    SELECT resource, node, start_s, end_s, agreement FROM archived_bindings;

-- NEGOTIATIONS

CREATE TABLE negotiations (
    id         UUID   NOT NULL PRIMARY KEY,
    party      TEXT   NOT NULL,
    -- The agreement that is to be replaced, where there is one.
    agreement  UUID   REFERENCES agreements (id),
    created_us BIGINT NOT NULL,
    expires_s  BIGINT NOT NULL,
    ended_us   BIGINT,
    -- Why the provider has opened it by itself: 'better-fit' or 'broken'. Null where its party has.
    proposed   TEXT,
    -- The InitiateNegotiationInput as JSON.
    document   TEXT   NOT NULL
);
CREATE INDEX negotiations_open ON negotiations (expires_s) WHERE ended_us IS NULL;
CREATE INDEX negotiations_by_agreement ON negotiations (agreement) WHERE agreement IS NOT NULL;
CREATE INDEX negotiations_by_party ON negotiations (party, id);
-- Pages say at once that the provider proposes something: this is looked up for each of them.
CREATE INDEX negotiations_proposed ON negotiations (party, expires_s) WHERE proposed IS NOT NULL AND ended_us IS NULL;

CREATE TABLE offers (
    id          UUID   NOT NULL PRIMARY KEY,
    negotiation UUID   NOT NULL REFERENCES negotiations (id),
    -- Its OfferId in the negotiation.
    name        TEXT   NOT NULL,
    parent      UUID   REFERENCES offers (id),
    creator     TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    created_us  BIGINT NOT NULL,
    expires_s   BIGINT,
    terms       TEXT,
    refusal     TEXT,
    -- What is held is held from the first until the second; while there is no second, it counts.
    held_us     BIGINT,
    released_us BIGINT CHECK (released_us IS NULL OR held_us IS NOT NULL),
    -- An offer is accepted once: the same agreement is made from no other.
    agreement   UUID   UNIQUE REFERENCES agreements (id),
    -- The offer as it came or was sent, as JSON.
    document    TEXT   NOT NULL,
    UNIQUE (negotiation, name)
);
CREATE INDEX offers_held ON offers (negotiation) WHERE held_us IS NOT NULL AND released_us IS NULL;

-- Agreements that are decided after they were answered for, and where the decision is to be told.
CREATE TABLE pending_agreements (
    agreement            UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    -- The counter offer that it accepts, where it accepts one.
    offer                UUID REFERENCES offers (id),
    -- The key that asked for it, where it has a cap.
    api_key              UUID,
    acceptance           TEXT,
    -- The reference parameters of the endpoint that the decision is told to, as an element.
    reference_parameters TEXT
);

-- What a request with an Idempotency-Key was answered. It may have made or changed anything, not only an agreement, and
-- whoever repeats it gets the answer of then, whatever has happened since.
CREATE TABLE idempotency (
    party        TEXT   NOT NULL,
    key          TEXT   NOT NULL,
    request_hash TEXT   NOT NULL,
    answer       TEXT   NOT NULL,
    created_us   BIGINT NOT NULL,
    PRIMARY KEY (party, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_us);

-- THE AUDIT TRAIL AND THE LEASE

-- Lines of the audit trail that are no agreement's: of negotiations and their offers, of requests that were refused, of keys.
-- They share the numbers and the chain of hashes with the lines in events.
CREATE TABLE notes (
    number      BIGINT NOT NULL PRIMARY KEY,
    hash        TEXT   NOT NULL,
    at_us       BIGINT NOT NULL,
    kind        TEXT   NOT NULL,
    -- The negotiation, offer, request or key.
    subject     UUID   NOT NULL,
    -- The negotiation that it belongs to, where it is one's.
    negotiation UUID,
    -- Whose it is, where that does not follow from the negotiation.
    party       TEXT,
    detail      TEXT   NOT NULL,
    -- As in events.
    sums        TEXT
);
CREATE INDEX notes_by_negotiation ON notes (negotiation, number) WHERE negotiation IS NOT NULL;
CREATE INDEX notes_by_key ON notes (subject) WHERE kind IN ('key-added', 'key-revoked');
-- Requests that were refused are found again by their ids, and agreements by what operators have done to them.
CREATE INDEX notes_refused ON notes (subject) WHERE kind = 'refused' AND negotiation IS NULL;
CREATE INDEX notes_by_operator ON notes (subject) WHERE kind = 'by-operator';
-- A start looks for the restores that a missing line may come from.
CREATE INDEX notes_restored ON notes (number) WHERE kind = 'restored';

-- One row: who may decide, the last batch that was written, and the end of the audit trail. Every batch updates it, so that of two
-- deciders one waits for the other and then finds that the epoch has passed.
CREATE TABLE lease (
    id             BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch          BIGINT NOT NULL,
    batch          UUID,
    -- How often it was found out what became of a batch. One that was sent before and comes later writes nothing.
    settled        BIGINT NOT NULL,
    -- The last line of the audit trail.
    trail_number   BIGINT NOT NULL,
    trail_hash     TEXT   NOT NULL,
    -- Sums over the rows of the tables that decide rights and money beside the agreements, as the last line that states them has them.
    sums           TEXT   NOT NULL,
    -- Up to which line the trail was found whole: a start checks the lines after it before it is ready, and the rest behind.
    checked_number BIGINT NOT NULL,
    checked_hash   TEXT   NOT NULL
);
INSERT INTO lease (id, epoch, settled, trail_number, trail_hash, sums, checked_number, checked_hash)
    VALUES (1, 0, 0, 0, '', '', 0, '');

-- The processes that serve from this database: each with the address at which the others reach it, and the digest of the secret by
-- which they know it.
CREATE TABLE replicas (
    name           TEXT   NOT NULL PRIMARY KEY,
    address        TEXT   NOT NULL,
    digest         TEXT   NOT NULL,
    joined_us      BIGINT NOT NULL,
    -- How many migrations it knows.
    schema_version BIGINT NOT NULL
);

-- WHAT RAN, FOR PREDICTION

-- One row per finished piece of work.
CREATE TABLE executions (
    agreement       UUID   NOT NULL REFERENCES agreements (id),
    ended_us        BIGINT NOT NULL,
    application     TEXT   NOT NULL,
    version         TEXT,
    arguments       TEXT   NOT NULL,
    input_bytes     BIGINT NOT NULL,
    output_bytes    BIGINT NOT NULL,
    resource        TEXT   NOT NULL,
    nodes           BIGINT NOT NULL,
    planned_start_s BIGINT NOT NULL,
    planned_end_s   BIGINT NOT NULL,
    estimate_s      BIGINT NOT NULL,
    queue_time_us   BIGINT NOT NULL,
    run_time_us     BIGINT NOT NULL,
    transfer_in_us  BIGINT NOT NULL,
    transfer_out_us BIGINT NOT NULL,
    -- The bytes that were moved in these times: input_bytes and output_bytes count files, too, that were only linked or kept where
    -- they were.
    moved_in_bytes  BIGINT NOT NULL,
    moved_out_bytes BIGINT NOT NULL,
    outcome         TEXT   NOT NULL,
    exit_status     BIGINT,
    PRIMARY KEY (agreement, ended_us)
);
CREATE INDEX executions_by_application ON executions (application, resource, ended_us);
CREATE INDEX executions_by_end ON executions (ended_us);

-- What became of executions that are no longer kept one by one: sums over the hours in which they ended. A version that was
-- not told apart is ''.
CREATE TABLE execution_hours (
    application   TEXT   NOT NULL,
    version       TEXT   NOT NULL,
    resource      TEXT   NOT NULL,
    outcome       TEXT   NOT NULL,
    hour_s        BIGINT NOT NULL,
    runs          BIGINT NOT NULL CHECK (runs > 0),
    queue_time_us BIGINT NOT NULL,
    run_time_us   BIGINT NOT NULL,
    input_bytes   BIGINT NOT NULL,
    output_bytes  BIGINT NOT NULL,
    PRIMARY KEY (application, version, resource, outcome, hour_s)
);

-- What resources were seen to be like. A column is null where the system did not tell. Samples older than a week become means over
-- hours; those are kept for two years.
CREATE TABLE resource_samples (
    resource            TEXT   NOT NULL REFERENCES resources (name),
    at_us               BIGINT NOT NULL,
    free_cpu_millionths BIGINT,
    bandwidth_in        BIGINT,
    bandwidth_out       BIGINT,
    nodes_up            BIGINT,
    -- Bytes a second that transfers of jobs have had, beside the room that the lines of the resource had by their speed. A row has
    -- one kind or the other.
    transfer_in         BIGINT,
    transfer_out        BIGINT,
    PRIMARY KEY (resource, at_us)
);
CREATE TABLE resource_hours (
    resource            TEXT   NOT NULL REFERENCES resources (name),
    hour_s              BIGINT NOT NULL,
    samples             BIGINT NOT NULL CHECK (samples > 0),
    free_cpu_millionths BIGINT,
    bandwidth_in        BIGINT,
    bandwidth_out       BIGINT,
    nodes_up            BIGINT,
    transfer_in         BIGINT,
    transfer_out        BIGINT,
    PRIMARY KEY (resource, hour_s)
);

-- MONEY

-- The ledger: each posting takes an amount from one account and adds it to another, a row a side, so that the rows of a
-- posting sum to nothing. Accounts are 'provider', 'party:NAME' and 'peer:NAME'. Rows are only ever added.
CREATE TABLE ledger (
    posting       UUID   NOT NULL,
    account       TEXT   NOT NULL,
    amount_micros BIGINT NOT NULL CHECK (amount_micros <> 0),
    currency      TEXT   NOT NULL,
    agreement     UUID   NOT NULL REFERENCES agreements (id),
    kind          TEXT   NOT NULL,
    detail        TEXT   NOT NULL,
    at_us         BIGINT NOT NULL,
    PRIMARY KEY (posting, account)
);
CREATE INDEX ledger_by_account ON ledger (account, posting);
CREATE INDEX ledger_by_agreement ON ledger (agreement);

-- The sums of each account by day (of UTC) and currency, which every posting adds to: so balances and months take no time in
-- proportion to the entries.
CREATE TABLE ledger_days (
    account        TEXT   NOT NULL,
    currency       TEXT   NOT NULL,
    day            BIGINT NOT NULL,
    -- What was added, and what was taken, below zero.
    credits_micros BIGINT NOT NULL CHECK (credits_micros >= 0),
    charges_micros BIGINT NOT NULL CHECK (charges_micros <= 0),
    PRIMARY KEY (account, currency, day)
);

-- The price of each agreement that was made with a key that has a cap, in the cap's currency.
CREATE TABLE spendings (
    agreement UUID   NOT NULL PRIMARY KEY,
    api_key   UUID   NOT NULL,
    micros    BIGINT NOT NULL
);
CREATE INDEX spendings_by_key ON spendings (api_key);

-- WHAT PARTIES ARE TOLD

-- Calls that are still to be made. One that succeeded, or was given up, goes.
CREATE TABLE call_backs (
    id         UUID   NOT NULL PRIMARY KEY,
    agreement  UUID   NOT NULL REFERENCES agreements (id),
    address    TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    attempts   BIGINT NOT NULL CHECK (attempts >= 0),
    due_us     BIGINT NOT NULL,
    created_us BIGINT NOT NULL
);
CREATE INDEX call_backs_by_time ON call_backs (due_us);

-- Where the events of a party are told, by the names that it has given. What has no address only has the secret that signs the calls of
-- single agreements. The events up to `told` have been told; attempts, failing_us (its first failure) and due_us are about the next one.
CREATE TABLE registrations (
    party      TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    id         UUID   NOT NULL,
    address    TEXT,
    secret     TEXT   NOT NULL,
    created_us BIGINT NOT NULL,
    told       BIGINT NOT NULL,
    attempts   BIGINT NOT NULL CHECK (attempts >= 0),
    failing_us BIGINT,
    due_us     BIGINT NOT NULL,
    PRIMARY KEY (party, name)
);

-- The events that parties are told of, by the numbers of their lines in the trail.
CREATE TABLE party_events (
    party           TEXT   NOT NULL,
    number          BIGINT NOT NULL,
    id              TEXT   NOT NULL,
    at_us           BIGINT NOT NULL,
    kind            TEXT   NOT NULL,
    agreement       UUID,
    negotiation     UUID,
    state           TEXT,
    planned_start_s BIGINT,
    planned_end_s   BIGINT,
    detail          TEXT   NOT NULL,
    PRIMARY KEY (party, number)
);
CREATE INDEX party_events_by_time ON party_events (at_us);

-- KEYS AND SESSIONS: of either only the SHA-256 of the secret is kept.

CREATE TABLE api_keys (
    id           UUID   NOT NULL PRIMARY KEY,
    digest       TEXT   NOT NULL UNIQUE,
    party        TEXT   NOT NULL,
    role         TEXT   NOT NULL,
    label        TEXT,
    created_us   BIGINT NOT NULL,
    expires_us   BIGINT,
    revoked_us   BIGINT,
    -- What it may not do: it only reads, or its agreements may cost only so much together.
    read_only    BIGINT NOT NULL CHECK (read_only IN (0, 1)),
    cap_micros   BIGINT,
    cap_currency TEXT
);

CREATE TABLE sessions (
    digest     TEXT   NOT NULL PRIMARY KEY,
    api_key    UUID   NOT NULL REFERENCES api_keys (id),
    expires_us BIGINT NOT NULL
);
CREATE INDEX sessions_by_expiry ON sessions (expires_us);
CREATE INDEX sessions_by_key ON sessions (api_key);

-- UPLOADED FILES, where several processes with folders of their own serve on one database: each process has a copy of all of them. A
-- database that one process owns has none.

CREATE TABLE party_files (
    -- The last change of the file: numbers rise in the order in which changes are seen.
    change_number BIGINT NOT NULL PRIMARY KEY,
    -- The digest of the party's name, as its folder is called.
    owner         TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    -- The parts below with its content; null where it was removed.
    content       UUID,
    bytes         BIGINT NOT NULL CHECK (bytes >= 0),
    sha256        TEXT   NOT NULL,
    written_us    BIGINT NOT NULL,
    UNIQUE (owner, name)
);
CREATE TABLE party_file_parts (
    content UUID   NOT NULL,
    number  BIGINT NOT NULL,
    bytes   BYTEA  NOT NULL,
    PRIMARY KEY (content, number)
);
-- One row, which each change locks until it is stored.
CREATE TABLE party_file_changes (
    id               BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    -- It tells this database from others, for the folders that are copies of it.
    origin           UUID   NOT NULL,
    last_number      BIGINT NOT NULL,
    -- The last change among the removals that are not remembered any more.
    forgotten_number BIGINT NOT NULL
);
