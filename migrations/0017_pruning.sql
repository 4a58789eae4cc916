-- What became of executions that are no longer kept one by one: sums over the hours in which they ended. A version that was
-- not told apart is ''.
CREATE TABLE execution_hours (
    application   TEXT   NOT NULL,
    version       TEXT   NOT NULL,
    resource      TEXT   NOT NULL,
    outcome       TEXT   NOT NULL,
    hour_s        BIGINT NOT NULL,
    runs          BIGINT NOT NULL CHECK (runs > 0),
    queue_time_us BIGINT NOT NULL,
    run_time_us   BIGINT NOT NULL,
    input_bytes   BIGINT NOT NULL,
    output_bytes  BIGINT NOT NULL,
    PRIMARY KEY (application, version, resource, outcome, hour_s)
);
