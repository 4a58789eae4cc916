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
INSERT INTO ledger_days (account, currency, day, credits_micros, charges_micros)
    SELECT account, currency, at_us / 86400000000,
        CAST(SUM(CASE WHEN amount_micros > 0 THEN amount_micros ELSE 0 END) AS BIGINT),
        CAST(SUM(CASE WHEN amount_micros < 0 THEN amount_micros ELSE 0 END) AS BIGINT)
    FROM ledger GROUP BY account, currency, at_us / 86400000000;

-- Agreements that are over, by start: all of them, and those of a party.
CREATE INDEX agreements_past ON agreements (planned_start_s, id) WHERE state IN ('Rejected', 'Complete', 'Terminated');
CREATE INDEX agreements_past_of ON agreements (party, planned_start_s, id)
    WHERE state IN ('Rejected', 'Complete', 'Terminated');
-- Pages say at once that the provider proposes something: this is looked up for each of them.
CREATE INDEX negotiations_proposed ON negotiations (party, expires_s) WHERE proposed IS NOT NULL AND ended_us IS NULL;
