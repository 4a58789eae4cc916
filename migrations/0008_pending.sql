-- Agreements that are decided after they were answered for, and where the decision is to be told.
CREATE TABLE pending_agreements (
    agreement  UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    acceptance TEXT
);

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
