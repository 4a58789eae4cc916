-- The rows of one accepted offer, a transaction each: what `pgbench` is to write beside the service.
\set start random(1800000000, 1900000000)
BEGIN;
WITH accepted AS (
    INSERT INTO agreements (id, party, name, template, resource, nodes, duration_s, ready_s, deadline_s, planned_start_s,
        planned_end_s, fixed, job, guarantees, state, service, started_us, ended_us, outcome, exit_status, created_us,
        version)
    VALUES (gen_random_uuid(), 'pgbench', 'an-hour-of-one-node', 'advance-reservation', 'local', 1, 3600, :start,
        :start + 31536000, :start, :start + 3600, 0, NULL, '[]', 'Terminated', 'Completed', NULL, NULL, NULL, NULL,
        1800000000000000, 1)
    RETURNING id
), kept AS (
    INSERT INTO agreement_documents (agreement, document) SELECT id, repeat('x', 1308) FROM accepted
)
INSERT INTO events (agreement, seq, at_us, kind, detail, version, state, service)
    SELECT id, 1, 1800000000000000, 'accepted', 'placed on local as the first fit in its window', 1, 'Observed',
        'NotReady' FROM accepted;
COMMIT;
