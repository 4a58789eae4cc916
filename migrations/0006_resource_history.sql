-- What resources were seen to be like, for prediction. A column is null where the system did not tell. Samples older than
-- a week become means over hours; those are kept for two years.
CREATE TABLE resource_samples (
    resource            TEXT   NOT NULL REFERENCES resources (name),
    at_us               BIGINT NOT NULL,
    free_cpu_millionths BIGINT,
    bandwidth_in        BIGINT,
    bandwidth_out       BIGINT,
    nodes_up            BIGINT,
    PRIMARY KEY (resource, at_us)
);
CREATE TABLE resource_hours (
    resource            TEXT   NOT NULL REFERENCES resources (name),
    hour_s              BIGINT NOT NULL,
    samples             BIGINT NOT NULL CHECK (samples > 0),
    free_cpu_millionths BIGINT,
    bandwidth_in        BIGINT,
    bandwidth_out       BIGINT,
    nodes_up            BIGINT,
    PRIMARY KEY (resource, hour_s)
);
CREATE INDEX executions_by_end ON executions (ended_us);
