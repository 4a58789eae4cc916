-- Why a node is said not to be up.
ALTER TABLE node_states ADD COLUMN reason TEXT;
