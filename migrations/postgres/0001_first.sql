-- What only Postgres has: it refuses by itself to bind a node to two agreements at once.
CREATE EXTENSION IF NOT EXISTS btree_gist;
ALTER TABLE node_bindings ADD CONSTRAINT node_bindings_have_one_owner
    EXCLUDE USING gist (resource WITH =, node WITH =, int8range(start_s, end_s) WITH &&);
