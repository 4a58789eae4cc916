-- How nodes stand that are not up, by who says so.
CREATE TABLE node_states (
    resource TEXT NOT NULL,
    node BIGINT NOT NULL,
    reporter TEXT NOT NULL,
    state TEXT NOT NULL,
    since_us BIGINT NOT NULL,
    PRIMARY KEY (resource, node, reporter)
);
