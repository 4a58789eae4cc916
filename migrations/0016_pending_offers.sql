-- The counter offer that a pending agreement accepts, where it accepts one.
ALTER TABLE pending_agreements ADD COLUMN offer UUID REFERENCES offers (id);
