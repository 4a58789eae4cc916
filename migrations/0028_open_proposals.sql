-- Pages say at once that the provider proposes something: this is looked up for each of them.
CREATE INDEX negotiations_proposed ON negotiations (party, expires_s) WHERE proposed IS NOT NULL AND ended_us IS NULL;
