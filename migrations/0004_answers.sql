-- What a request with an Idempotency-Key was answered. It may have made or changed anything, not only an agreement, and
-- whoever repeats it gets the answer of then, whatever has happened since.
DROP TABLE idempotency;
CREATE TABLE idempotency (
    party        TEXT   NOT NULL,
    key          TEXT   NOT NULL,
    request_hash TEXT   NOT NULL,
    answer       TEXT   NOT NULL,
    created_us   BIGINT NOT NULL,
    PRIMARY KEY (party, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_us);
