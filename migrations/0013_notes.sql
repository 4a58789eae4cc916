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
    detail      TEXT   NOT NULL
);
CREATE INDEX notes_by_negotiation ON notes (negotiation, number) WHERE negotiation IS NOT NULL;
CREATE INDEX notes_by_key ON notes (subject) WHERE kind IN ('key-added', 'key-revoked');
CREATE INDEX negotiations_by_agreement ON negotiations (agreement) WHERE agreement IS NOT NULL;
