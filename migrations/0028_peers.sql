-- The agreements that peers carry out: each with the address of the peer's agreement behind it, once that is known to be made, and
-- the key under which it was asked for.
CREATE TABLE peer_agreements (
    id               UUID   NOT NULL PRIMARY KEY,
    agreement        UUID   NOT NULL REFERENCES agreements,
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
