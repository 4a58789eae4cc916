-- The first schema. Postgres and SQLite both take this text, so it keeps to what they share:
--   BIGINT for every number and time, the unit last in the column's name (_s planned in seconds, _us happened, in
--   microseconds since the Unix epoch); TEXT for JSON, so that a document comes back as it went in; UUID, which
--   Postgres knows as a type and SQLite keeps as the sixteen bytes.
-- A migration that has been released is never edited: its checksum is stored, and a store that differs is refused.

CREATE TABLE resources (
    name     TEXT   NOT NULL PRIMARY KEY,
    kind     TEXT   NOT NULL,
    capacity BIGINT NOT NULL CHECK (capacity >= 0)
);

-- What a resource had since when: what was promised last year is judged by what there was last year.
CREATE TABLE capacities (
    resource TEXT   NOT NULL REFERENCES resources (name),
    since_us BIGINT NOT NULL,
    capacity BIGINT NOT NULL CHECK (capacity >= 0),
    PRIMARY KEY (resource, since_us)
);

CREATE TABLE agreements (
    id              UUID   NOT NULL PRIMARY KEY,
    party           TEXT   NOT NULL,
    name            TEXT,
    template        TEXT   NOT NULL,
    resource        TEXT   NOT NULL REFERENCES resources (name),
    nodes           BIGINT NOT NULL CHECK (nodes > 0),
    duration_s      BIGINT NOT NULL CHECK (duration_s > 0),
    ready_s         BIGINT NOT NULL,
    deadline_s      BIGINT NOT NULL,
    planned_start_s BIGINT NOT NULL,
    planned_end_s   BIGINT NOT NULL CHECK (planned_end_s >= planned_start_s),
    -- 1 when the placement moves no more, else 0.
    fixed           BIGINT NOT NULL CHECK (fixed IN (0, 1)),
    job             TEXT,
    guarantees      TEXT   NOT NULL,
    state           TEXT   NOT NULL,
    service         TEXT   NOT NULL,
    started_us      BIGINT,
    ended_us        BIGINT,
    outcome         TEXT,
    exit_status     BIGINT,
    created_us      BIGINT NOT NULL,
    version         BIGINT NOT NULL CHECK (version > 0)
);

-- A restart reads what is not final, however long the history has grown.
CREATE INDEX agreements_live ON agreements (id) WHERE state NOT IN ('Rejected', 'Complete', 'Terminated');
CREATE INDEX agreements_by_party ON agreements (party, id);

-- The accepted offer as it came, apart from the row that every read touches.
CREATE TABLE agreement_documents (
    agreement UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    document  TEXT NOT NULL
);

-- The timeline. Each line bears the version that the agreement had after the change, and its states then, so that the
-- moves between states can be checked afterwards.
CREATE TABLE events (
    agreement UUID   NOT NULL REFERENCES agreements (id),
    seq       BIGINT NOT NULL CHECK (seq > 0),
    at_us     BIGINT NOT NULL,
    kind      TEXT   NOT NULL,
    detail    TEXT   NOT NULL,
    version   BIGINT NOT NULL,
    state     TEXT   NOT NULL,
    service   TEXT   NOT NULL,
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

-- One row per finished piece of work, for prediction.
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
    outcome         TEXT   NOT NULL,
    exit_status     BIGINT,
    PRIMARY KEY (agreement, ended_us)
);
CREATE INDEX executions_by_application ON executions (application, resource, ended_us);

-- What a request with an Idempotency-Key did.
CREATE TABLE idempotency (
    party        TEXT   NOT NULL,
    key          TEXT   NOT NULL,
    request_hash TEXT   NOT NULL,
    agreement    UUID   NOT NULL REFERENCES agreements (id),
    created_us   BIGINT NOT NULL,
    PRIMARY KEY (party, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_us);

-- One row: who may decide, and the last batch that was written. Every batch updates it, so that of two deciders one
-- waits for the other and then finds that the epoch has passed.
CREATE TABLE lease (
    id    BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL,
    batch UUID
);
INSERT INTO lease (id, epoch) VALUES (1, 0);

-- Keys and sessions: of either only the SHA-256 of the secret is kept.
CREATE TABLE api_keys (
    id         UUID   NOT NULL PRIMARY KEY,
    digest     TEXT   NOT NULL UNIQUE,
    party      TEXT   NOT NULL,
    role       TEXT   NOT NULL,
    label      TEXT,
    created_us BIGINT NOT NULL,
    expires_us BIGINT,
    revoked_us BIGINT
);

CREATE TABLE sessions (
    digest     TEXT   NOT NULL PRIMARY KEY,
    api_key    UUID   NOT NULL REFERENCES api_keys (id),
    expires_us BIGINT NOT NULL
);
CREATE INDEX sessions_by_expiry ON sessions (expires_us);
CREATE INDEX sessions_by_key ON sessions (api_key);
