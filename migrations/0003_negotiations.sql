-- Negotiations and their trees of offers.
CREATE TABLE negotiations (
    id         UUID   NOT NULL PRIMARY KEY,
    party      TEXT   NOT NULL,
    -- The agreement that is to be replaced, where there is one.
    agreement  UUID   REFERENCES agreements (id),
    created_us BIGINT NOT NULL,
    expires_s  BIGINT NOT NULL,
    ended_us   BIGINT,
    -- The InitiateNegotiationInput as it came.
    document   TEXT   NOT NULL
);
CREATE INDEX negotiations_open ON negotiations (expires_s) WHERE ended_us IS NULL;

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
    -- The offer as it came or was sent, in a message that it can stand in alone.
    document    TEXT   NOT NULL,
    UNIQUE (negotiation, name)
);
CREATE INDEX offers_held ON offers (negotiation) WHERE held_us IS NOT NULL AND released_us IS NULL;
