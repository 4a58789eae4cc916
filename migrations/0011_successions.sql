-- Which agreement took the place of which: of each at most one.
CREATE TABLE successions (
    old UUID NOT NULL PRIMARY KEY REFERENCES agreements (id),
    new UUID NOT NULL UNIQUE REFERENCES agreements (id)
);
