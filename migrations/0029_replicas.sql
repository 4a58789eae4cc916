-- The processes that serve from this database: each with the address at which the others reach it, and the digest of the secret by
-- which they know it.
CREATE TABLE replicas (
    name           TEXT   NOT NULL PRIMARY KEY,
    address        TEXT   NOT NULL,
    digest         TEXT   NOT NULL,
    joined_us      BIGINT NOT NULL,
    -- How many of these migrations it knows.
    schema_version BIGINT NOT NULL
);
-- The replica on whose machine a local resource is.
CREATE TABLE resource_hosts (
    resource   TEXT   NOT NULL PRIMARY KEY,
    replica    TEXT   NOT NULL
);

-- The files that parties have uploaded, where several processes with folders of their own serve on one database: each process has
-- a copy of all of them. A database that one process owns has none.
CREATE TABLE party_files (
    -- The last change of the file: numbers rise in the order in which changes are seen.
    change_number BIGINT NOT NULL PRIMARY KEY,
    -- The digest of the party's name, as its folder is called.
    owner         TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    -- The parts below with its content; null where it was removed.
    content       UUID,
    bytes         BIGINT NOT NULL CHECK (bytes >= 0),
    sha256        TEXT   NOT NULL,
    written_us    BIGINT NOT NULL,
    UNIQUE (owner, name)
);
CREATE TABLE party_file_parts (
    content UUID   NOT NULL,
    number  BIGINT NOT NULL,
    bytes   BYTEA  NOT NULL,
    PRIMARY KEY (content, number)
);
-- One row, which each change locks until it is stored.
CREATE TABLE party_file_changes (
    id               BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    -- It tells this database from others, for the folders that are copies of it.
    origin           UUID   NOT NULL,
    last_number      BIGINT NOT NULL,
    -- The last change among the removals that are not remembered any more.
    forgotten_number BIGINT NOT NULL
);
