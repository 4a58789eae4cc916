-- The archive: timelines, bound nodes and documents of agreements that ended long ago, in tables that no decision reads or
-- writes. So events, node_bindings and agreement_documents do not grow with the years. The views join both.
CREATE TABLE archived_documents (
    agreement UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    document  TEXT NOT NULL
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
    PRIMARY KEY (agreement, seq)
);
CREATE VIEW all_events AS
    SELECT agreement, seq, at_us, kind, detail, version, state, service, number, hash FROM events UNION ALL
    SELECT agreement, seq, at_us, kind, detail, version, state, service, number, hash FROM archived_events;

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

-- A start reads the bindings that end in the future; without this index it would read all of them.
CREATE INDEX node_bindings_by_end ON node_bindings (end_s);
