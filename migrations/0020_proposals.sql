-- Why the provider has opened a negotiation by itself: 'better-fit' or 'broken'. Null where its party has.
ALTER TABLE negotiations ADD COLUMN proposed TEXT;
CREATE INDEX negotiations_by_party ON negotiations (party, id);
CREATE INDEX negotiations_about ON negotiations (agreement) WHERE agreement IS NOT NULL;
