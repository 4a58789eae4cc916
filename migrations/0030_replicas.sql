-- The processes that serve from this database: each with the address at which the others reach it, and the digest of the secret by
-- which they know it.
CREATE TABLE replicas (
    name       TEXT   NOT NULL PRIMARY KEY,
    address    TEXT   NOT NULL,
    digest     TEXT   NOT NULL,
    joined_us  BIGINT NOT NULL
);
-- The replica on whose machine a local resource is.
CREATE TABLE resource_hosts (
    resource   TEXT   NOT NULL PRIMARY KEY,
    replica    TEXT   NOT NULL
);
