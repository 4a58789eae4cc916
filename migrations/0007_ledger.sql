-- The ledger: each posting takes an amount from one account and adds it to another, a row a side, so that the rows of a
-- posting sum to nothing. Accounts are 'provider' and 'party:NAME'. Rows are only ever added.
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
