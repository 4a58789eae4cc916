-- The reference parameters of the endpoint that the decision is told to, as an element.
ALTER TABLE pending_agreements ADD COLUMN reference_parameters TEXT;

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

-- Since when an operator has nothing new be placed on a resource, while what is agreed stays there.
ALTER TABLE resources ADD COLUMN frozen_us BIGINT;

-- What operators have done to an agreement.
CREATE INDEX notes_by_operator ON notes (subject) WHERE kind = 'by-operator';

-- What a key may not do: it only reads, or its agreements may cost only so much together.
ALTER TABLE api_keys ADD COLUMN read_only BIGINT NOT NULL DEFAULT 0 CHECK (read_only IN (0, 1));
ALTER TABLE api_keys ADD COLUMN cap_micros BIGINT;
ALTER TABLE api_keys ADD COLUMN cap_currency TEXT;

-- The price of each agreement that was made with a key that has a cap, in the cap's currency.
CREATE TABLE spendings (
    agreement UUID   NOT NULL PRIMARY KEY,
    api_key   UUID   NOT NULL,
    micros    BIGINT NOT NULL
);
CREATE INDEX spendings_by_key ON spendings (api_key);

-- The key that asked for a pending agreement, where it has a cap.
ALTER TABLE pending_agreements ADD COLUMN api_key UUID;
