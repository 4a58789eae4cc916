//! Every SQL statement, in the dialect that Postgres and SQLite share: `$1` placeholders, no clock of the database, no
//! function that only one has. [`crate::Store::check_statements`] has an engine prepare each of them. Those about many rows at
//! once are in [`super::bulk`].

use super::statement_parts::{
    agreement_columns, begin_batch, hourly_means, last_newest, list_agreements, list_negotiations,
    live_reservations, moves_recorded, past_reservations, reservation_found, select_agreement,
    select_negotiation, select_offer, select_offer_with_agreements,
};

/// Declares statements as constants and lists them for the test.
macro_rules! statements {
    ($($name:ident = $sql:expr;)+) => {
        $(pub(crate) const $name: &str = $sql;)+
        pub(crate) const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),+];
    };
}

statements! {

    // Migrations: made and read before anything else exists.
    CREATE_MIGRATIONS = "CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT NOT NULL PRIMARY KEY, \
        name TEXT NOT NULL, checksum TEXT NOT NULL)";
    APPLIED_MIGRATIONS = "SELECT version, checksum FROM schema_migrations ORDER BY version";
    RECORD_MIGRATION = "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";

    // The lease.
    EPOCH = "SELECT epoch FROM lease WHERE id = 1";
    LEASE = "SELECT epoch, trail_number, trail_hash, sums FROM lease WHERE id = 1";
    NEXT_EPOCH = "UPDATE lease SET epoch = epoch + 1, batch = NULL WHERE id = 1 \
        RETURNING epoch, settled, trail_number, trail_hash, sums";
    // Where the trail is longer than when its end was read, nothing changes.
    BEGIN_BATCH = begin_batch!("RETURNING settled");
    // For a batch that is one statement: one that was settled before the server has begun with it changes nothing any more.
    GUARD_BATCH = begin_batch!("AND settled = $8");
    END_TRAIL = "UPDATE lease SET trail_number = $1, trail_hash = $2, sums = $3 WHERE id = 1";
    TRAIL = "SELECT trail_number, trail_hash, sums FROM lease WHERE id = 1";
    CHECKED_TRAIL = "SELECT checked_number AS trail_number, checked_hash AS trail_hash, sums FROM lease WHERE id = 1";
    TRAIL_CHECKED = "UPDATE lease SET checked_number = $1, checked_hash = $2 WHERE id = 1 AND checked_number < $1";
    // Each part by itself is a page in the order of its index: PostgreSQL would sort all of them otherwise. A column that a part
    // does not have needs its type for that.
    TRAIL_LINES = "SELECT * FROM (SELECT number, hash, at_us, kind, detail, agreement AS subject, \
        CAST(NULL AS UUID) AS negotiation, CAST(NULL AS TEXT) AS party, seq, version, state, service, digest, sums FROM events \
        WHERE number > $1 ORDER BY number LIMIT $2) a UNION ALL SELECT * FROM (SELECT number, hash, at_us, kind, detail, \
        subject, negotiation, party, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS TEXT), CAST(NULL AS TEXT), \
        CAST(NULL AS UUID), sums FROM notes WHERE number > $1 ORDER BY number LIMIT $2) b UNION ALL SELECT * FROM (SELECT number, hash, at_us, kind, \
        detail, agreement, CAST(NULL AS UUID), CAST(NULL AS TEXT), seq, version, state, service, digest, sums FROM archived_events \
        WHERE number > $1 ORDER BY number LIMIT $2) c ORDER BY number LIMIT $2";
    // The changes of the plan that no party asks for, out of the lines after one; of single moves the newest ones.
    PLAN_CHANGES = "SELECT number, hash, at_us, kind, detail, agreement AS subject, CAST(NULL AS UUID) AS negotiation, \
        CAST(NULL AS TEXT) AS party FROM all_events WHERE number > $1 AND kind IN ('restarted', 'broken', 'overrun') \
        UNION ALL SELECT number, hash, at_us, kind, detail, subject, negotiation, party FROM notes \
        WHERE number > $1 AND kind = 'moves-recorded' UNION ALL SELECT * FROM (SELECT number, hash, at_us, kind, detail, agreement, \
        CAST(NULL AS UUID), CAST(NULL AS TEXT) FROM all_events WHERE number > $1 AND kind = 'moved' ORDER BY number DESC LIMIT $2) m \
        ORDER BY number DESC LIMIT $3";
    // The hash of one line.
    LINE_HASH = "SELECT hash FROM all_events WHERE number = $1 UNION ALL SELECT hash FROM notes WHERE number = $1";
    RESTORES = "SELECT n.number, n.hash, n.at_us, n.kind, n.detail, n.subject, n.negotiation, n.party FROM notes n \
        WHERE n.kind = 'restored' ORDER BY n.number";
    LOCK_TRAIL = "UPDATE lease SET epoch = epoch WHERE id = 1 RETURNING epoch, trail_number, trail_hash, sums";
    // The lines of the negotiations that an agreement was made in and of those about it, with its own timeline.
    TIMELINE = "SELECT number, hash, at_us, kind, detail, agreement AS subject, NULL AS negotiation, NULL AS party \
        FROM all_events WHERE agreement = $1 UNION ALL SELECT number, hash, at_us, kind, detail, subject, negotiation, party \
        FROM notes WHERE negotiation IN (SELECT negotiation FROM offers WHERE agreement = $1 \
        UNION SELECT id FROM negotiations WHERE agreement = $1) ORDER BY number";
    REFUSED_REQUEST = "SELECT number, hash, at_us, kind, detail, subject, negotiation, party FROM notes \
        WHERE subject = $1 AND kind = 'refused' AND negotiation IS NULL";
    UNTOLD_OFFERS = "SELECT o.id FROM offers o WHERE NOT EXISTS (SELECT 1 FROM notes n \
        WHERE n.negotiation = o.negotiation AND n.subject = o.id AND n.kind IN ('asked', 'countered', 'refused', 'declined')) \
        OR o.agreement IS NOT NULL AND NOT EXISTS (SELECT 1 FROM notes n \
        WHERE n.negotiation = o.negotiation AND n.subject = o.id AND n.kind = 'taken') \
        OR o.agreement IS NULL AND o.released_us IS NOT NULL AND NOT EXISTS (SELECT 1 FROM notes n \
        WHERE n.negotiation = o.negotiation AND n.subject = o.id AND n.kind IN ('lapsed', 'released', 'declined')) \
        ORDER BY o.id LIMIT $1";
    UNTOLD_NEGOTIATIONS = "SELECT g.id FROM negotiations g WHERE NOT EXISTS (SELECT 1 FROM notes n \
        WHERE n.negotiation = g.id AND n.subject = g.id AND n.kind IN ('negotiating', 'proposed')) OR g.ended_us IS NOT NULL \
        AND NOT EXISTS (SELECT 1 FROM notes n WHERE n.negotiation = g.id AND n.subject = g.id AND n.kind = 'withdrawn') \
        ORDER BY g.id LIMIT $1";
    UNTOLD_KEYS = "SELECT k.id FROM api_keys k WHERE NOT EXISTS (SELECT 1 FROM notes n \
        WHERE n.subject = k.id AND n.kind IN ('key-added', 'key-revoked') AND n.kind = 'key-added') \
        OR k.revoked_us IS NOT NULL AND NOT EXISTS (SELECT 1 FROM notes n \
        WHERE n.subject = k.id AND n.kind IN ('key-added', 'key-revoked') AND n.kind = 'key-revoked') \
        ORDER BY k.id LIMIT $1";
    // All rows of the tables with a sum.
    ALL_BINDINGS = "SELECT resource, node, start_s, end_s, agreement FROM all_bindings";
    ALL_EXECUTIONS = "SELECT * FROM executions";
    ALL_ENTRIES = "SELECT * FROM ledger";
    ALL_SPENDINGS = "SELECT * FROM spendings";
    ALL_SUCCESSIONS = "SELECT * FROM successions";
    ALL_MOVES = "SELECT number, at_us, cause, why, moves FROM moves ORDER BY number";
    MOVES_AFTER = "SELECT number, at_us, cause, why, moves FROM moves WHERE number > $1 ORDER BY number";
    // The agreements that are named and are not there, and where; and those without their document.
    MISSING_AGREEMENTS = "SELECT DISTINCT agreement, place FROM (SELECT agreement, 'its document' AS place FROM agreement_documents \
        UNION ALL SELECT agreement, 'its document' FROM archived_documents UNION ALL SELECT agreement, 'its timeline' FROM all_events \
        UNION ALL SELECT agreement, 'its nodes' FROM all_bindings UNION ALL SELECT agreement, 'its executions' FROM executions \
        UNION ALL SELECT agreement, 'the ledger' FROM ledger UNION ALL SELECT old, 'the successions' FROM successions \
        UNION ALL SELECT new, 'the successions' FROM successions UNION ALL SELECT agreement, 'its negotiations' FROM negotiations \
        UNION ALL SELECT agreement, 'its offers' FROM offers UNION ALL SELECT agreement, 'the pending agreements' FROM pending_agreements \
        UNION ALL SELECT agreement, 'the agreements of peers' FROM peer_agreements UNION ALL SELECT agreement, 'its call-backs' FROM call_backs \
        UNION ALL SELECT agreement, 'what its key has spent' FROM spendings UNION ALL SELECT agreement, 'the events of its party' FROM party_events \
        UNION ALL SELECT origin, 'what goes on with its work' FROM agreements) AS named WHERE agreement IS NOT NULL \
        AND NOT EXISTS (SELECT 1 FROM agreements a WHERE a.id = named.agreement) ORDER BY agreement, place LIMIT $1";
    WITHOUT_DOCUMENT = "SELECT id FROM agreements a WHERE NOT EXISTS (SELECT 1 FROM agreement_documents d WHERE d.agreement = a.id) \
        AND NOT EXISTS (SELECT 1 FROM archived_documents d WHERE d.agreement = a.id) ORDER BY id LIMIT $1";
    // Locks the row, and so waits for a transaction that is still being committed. Of one that has not reached the server yet nothing is
    // written afterwards.
    SETTLE = "UPDATE lease SET settled = settled + 1 WHERE id = 1 \
        RETURNING epoch, batch, settled, trail_number, trail_hash, sums";

    // Agreements.
    DOCUMENT = "SELECT document, template FROM agreement_documents WHERE agreement = $1 UNION ALL \
        SELECT document, template FROM archived_documents WHERE agreement = $1";
    KEEP_TEMPLATE = "INSERT INTO template_versions (id, document) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    TEMPLATE_VERSION = "SELECT document FROM template_versions WHERE id = $1";
    AGREEMENT = select_agreement!("WHERE id = $1");
    LIVE_AGREEMENTS =
        select_agreement!("WHERE state NOT IN ('Rejected', 'Complete', 'Terminated') ORDER BY id");
    LIVE_COUNT = "SELECT COUNT(*) AS live FROM agreements WHERE state NOT IN ('Rejected', 'Complete', 'Terminated')";
    LIVE_ID = "SELECT id FROM agreements WHERE state NOT IN ('Rejected', 'Complete', 'Terminated') ORDER BY id LIMIT 1 OFFSET $1";
    PROCESSING_AGREEMENTS = select_agreement!("WHERE service = 'Processing'");
    AGREEMENTS_TO_START = select_agreement!(
        "WHERE party = $1 AND state NOT IN ('Rejected', 'Complete', 'Terminated') AND job IS NOT NULL \
        AND (started_us IS NULL OR service = 'Processing') ORDER BY id"
    );
    LOST_AGREEMENTS = select_agreement!(
        "WHERE outcome = 'lost' AND ended_us > $1 AND job IS NOT NULL ORDER BY ended_us DESC LIMIT $2"
    );
    LOST_AND_UNANSWERED = select_agreement!(
        "WHERE state = 'Complete' AND id IN (SELECT id FROM agreements WHERE outcome = 'lost' AND ended_us > 0) AND EXISTS (SELECT 1 FROM all_events e WHERE e.agreement = agreements.id \
        AND e.kind = 'closed' AND e.at_us > $1) AND NOT EXISTS (SELECT 1 FROM all_events e WHERE e.agreement = agreements.id \
        AND e.kind = 'terminating') AND NOT EXISTS (SELECT 1 FROM negotiations n \
        WHERE n.agreement = agreements.id AND n.proposed = 'broken') AND NOT EXISTS (SELECT 1 FROM notes o \
        WHERE o.subject = agreements.id AND o.kind = 'by-operator' AND o.detail LIKE 'evicted %') ORDER BY id LIMIT $2"
    );
    GOES_ON = "SELECT id FROM agreements WHERE origin = $1 AND state NOT IN ('Rejected', 'Complete', 'Terminated') LIMIT 1";
    // The kind is compared as a range, and ordered by: as a constant it would let PostgreSQL take the index of all agreements, and look
    // through everything for a kind that has little among the newest.
    AGREEMENTS_NEWEST = list_agreements!(
        "id < $1",
        "id DESC"
    );
    AGREEMENTS_NEWEST_OF = list_agreements!(
        "party >= $8 AND (party, id) < ($8, $1)",
        "party DESC, id DESC"
    );
    AGREEMENTS_IN_STATE = list_agreements!(
        "state >= $8 AND (state, id) < ($8, $1)",
        "state DESC, id DESC"
    );
    AGREEMENTS_IN_STATE_OF = list_agreements!(
        "(party, state) >= ($9, $8) AND (party, state, id) < ($9, $8, $1)",
        "party DESC, state DESC, id DESC"
    );
    AGREEMENTS_NAMED = list_agreements!(
        "name >= $8 AND (name, id) < ($8, $1)",
        "name DESC, id DESC"
    );
    AGREEMENTS_NAMED_OF = list_agreements!(
        "name IS NOT NULL AND (party, name) >= ($9, $8) AND (party, name, id) < ($9, $8, $1)",
        "party DESC, name DESC, id DESC"
    );
    AGREEMENTS_WITH_ID = list_agreements!("initiator_id = $8 AND id < $1", "id DESC");
    AGREEMENTS_WITH_ID_OF = list_agreements!("party = $9 AND initiator_id = $8 AND id < $1", "id DESC");
    LAST_NEWEST = last_newest!(
        "id < $1",
        "id DESC"
    );
    LAST_NEWEST_OF = last_newest!(
        "party >= $3 AND (party, id) < ($3, $1)",
        "party DESC, id DESC"
    );
    LAST_IN_STATE = last_newest!(
        "state >= $3 AND (state, id) < ($3, $1)",
        "state DESC, id DESC"
    );
    LAST_IN_STATE_OF = last_newest!(
        "(party, state) >= ($4, $3) AND (party, state, id) < ($4, $3, $1)",
        "party DESC, state DESC, id DESC"
    );
    LAST_NAMED = last_newest!(
        "name >= $3 AND (name, id) < ($3, $1)",
        "name DESC, id DESC"
    );
    LAST_NAMED_OF = last_newest!(
        "name IS NOT NULL AND (party, name) >= ($4, $3) AND (party, name, id) < ($4, $3, $1)",
        "party DESC, name DESC, id DESC"
    );
    LAST_WITH_ID = last_newest!("initiator_id = $3 AND id < $1", "id DESC");
    LAST_WITH_ID_OF = last_newest!("party = $4 AND initiator_id = $3 AND id < $1", "id DESC");
    FIRST_WITH_ID = select_agreement!("WHERE party = $1 AND initiator_id = $2 ORDER BY id LIMIT 1");
    AGREEMENTS_OLDEST = select_agreement!("WHERE id > $1 AND id <= $3 ORDER BY id LIMIT $2");
    LIVE_OLDEST = select_agreement!(
        "WHERE state NOT IN ('Rejected', 'Complete', 'Terminated') AND id > $1 AND id <= $3 ORDER BY id LIMIT $2"
    );

    // Reservations as people look for them.
    LIVE_RESERVATIONS = live_reservations!(
        "state NOT IN ('Rejected', 'Complete', 'Terminated')",
        "(planned_start_s, id) > ($9, $10)",
        "planned_start_s, id"
    );
    LIVE_RESERVATIONS_OF = live_reservations!(
        "state NOT IN ('Rejected', 'Complete', 'Terminated')",
        "party <= $13 AND (party, planned_start_s, id) > ($13, $9, $10)",
        "party, planned_start_s, id"
    );
    // Few of those that are not over have begun, and these have an index of their own.
    RUNNING_RESERVATIONS = live_reservations!(
        "service <> 'NotReady' AND state || '' NOT IN ('Rejected', 'Complete', 'Terminated')",
        "(planned_start_s, id) > ($9, $10)",
        "planned_start_s, id"
    );
    RUNNING_RESERVATIONS_OF = live_reservations!(
        "service <> 'NotReady' AND state || '' NOT IN ('Rejected', 'Complete', 'Terminated')",
        "party <= $13 AND (party, planned_start_s, id) > ($13, $9, $10)",
        "party, planned_start_s, id"
    );
    LIVE_PLACES = "SELECT planned_start_s, id FROM agreements WHERE state NOT IN ('Rejected', 'Complete', 'Terminated') \
        AND (planned_start_s, id) > ($1, $2) ORDER BY planned_start_s, id LIMIT 2 OFFSET $3";
    LIVE_PLACES_OF = "SELECT planned_start_s, id FROM agreements WHERE state NOT IN ('Rejected', 'Complete', 'Terminated') \
        AND party <= $4 AND (party, planned_start_s, id) > ($4, $1, $2) \
        ORDER BY party, planned_start_s, id LIMIT 2 OFFSET $3";
    RUNNING_PLACES = "SELECT planned_start_s, id FROM agreements WHERE service <> 'NotReady' \
        AND state || '' NOT IN ('Rejected', 'Complete', 'Terminated') AND (planned_start_s, id) > ($1, $2) \
        ORDER BY planned_start_s, id LIMIT 2 OFFSET $3";
    RUNNING_PLACES_OF = "SELECT planned_start_s, id FROM agreements WHERE service <> 'NotReady' \
        AND state || '' NOT IN ('Rejected', 'Complete', 'Terminated') AND party <= $4 \
        AND (party, planned_start_s, id) > ($4, $1, $2) ORDER BY party, planned_start_s, id LIMIT 2 OFFSET $3";
    // The party is compared as a range, and ordered by: as a constant it would let PostgreSQL take the index of all parties, and look
    // through everything for a party that has little.
    PAST_RESERVATIONS = past_reservations!("(planned_start_s, id) < ($9, $10)", "planned_start_s DESC, id DESC");
    PAST_RESERVATIONS_OF = past_reservations!(
        "party >= $13 AND (party, planned_start_s, id) < ($13, $9, $10)",
        "party DESC, planned_start_s DESC, id DESC"
    );
    PAST_PLACES = "SELECT planned_start_s, id FROM agreements WHERE state || '' IN ('Rejected', 'Complete', 'Terminated') \
        AND (planned_start_s, id) < ($1, $2) ORDER BY planned_start_s DESC, id DESC LIMIT 2 OFFSET $3";
    PAST_PLACES_OF = "SELECT planned_start_s, id FROM agreements WHERE state || '' IN ('Rejected', 'Complete', 'Terminated') \
        AND party >= $4 AND (party, planned_start_s, id) < ($4, $1, $2) \
        ORDER BY party DESC, planned_start_s DESC, id DESC LIMIT 2 OFFSET $3";

    // The archive. Each agreement has a document, and one that is not archived yet has it here.
    LONG_OVER = "SELECT d.agreement FROM agreement_documents d JOIN agreements a ON a.id = d.agreement \
        WHERE a.state IN ('Rejected', 'Complete', 'Terminated') \
        AND COALESCE(a.ended_us, a.planned_end_s * 1000000) < $1 ORDER BY d.agreement LIMIT $2";

    // The timeline.
    EVENTS = "SELECT at_us, kind, detail FROM all_events WHERE agreement = $1 ORDER BY seq";

    // CROSS has SQLite begin with the agreements, which are few, even where many lines lie between theirs.
    LIVE_STEPS = "SELECT e.agreement AS subject, e.seq, e.kind, e.version, e.state, e.service, e.digest FROM agreements a \
        CROSS JOIN events e WHERE e.agreement = a.id AND a.state NOT IN ('Rejected', 'Complete', 'Terminated') \
        AND a.id > $1 AND a.id <= $2 ORDER BY e.agreement, e.seq";

    // Resources.
    RESOURCES = "SELECT name, kind, capacity, position, rate, details, configured, retired_us, frozen_us FROM resources \
        ORDER BY position, name";
    NODE_STATES = "SELECT resource, node, reporter, state, since_us, reason FROM node_states \
        ORDER BY resource, node, reporter";
    CAPACITIES = "SELECT resource, since_us, capacity FROM capacities ORDER BY resource, since_us";

    // Nodes. In two parts: each has its index as long as no order is asked for. CROSS has SQLite begin with the agreements.
    LIVE_BINDINGS = "SELECT resource, node, start_s, end_s, agreement FROM node_bindings WHERE end_s > $1 \
        UNION ALL SELECT b.resource, b.node, b.start_s, b.end_s, b.agreement FROM agreements a \
        CROSS JOIN node_bindings b WHERE b.agreement = a.id AND b.end_s <= $1 \
        AND a.state NOT IN ('Rejected', 'Complete', 'Terminated')";
    BINDINGS_BETWEEN = "SELECT resource, node, start_s, end_s, agreement FROM all_bindings \
        WHERE agreement > $1 AND agreement <= $2 ORDER BY agreement, node, start_s";
    LIVE_BINDINGS_BETWEEN = "SELECT b.resource, b.node, b.start_s, b.end_s, b.agreement FROM agreements a \
        CROSS JOIN node_bindings b WHERE b.agreement = a.id AND a.state NOT IN ('Rejected', 'Complete', 'Terminated') \
        AND a.id > $1 AND a.id <= $2 ORDER BY b.agreement, b.node, b.start_s";
    DOUBLE_BINDINGS = "SELECT resource, node, next_s, agreement, other FROM (SELECT resource, node, end_s, agreement, \
        LEAD(start_s) OVER owners AS next_s, LEAD(agreement) OVER owners AS other FROM all_bindings \
        WINDOW owners AS (PARTITION BY resource, node ORDER BY start_s)) AS pairs WHERE next_s < end_s \
        ORDER BY resource, node, next_s LIMIT $1";

    // How the resources were used: node-seconds and node-microseconds between two instants.
    BOOKED_BETWEEN = "SELECT resource, CAST(SUM(CASE WHEN end_s < $2 THEN end_s ELSE $2 END \
        - CASE WHEN start_s > $1 THEN start_s ELSE $1 END) AS BIGINT) AS booked_s FROM node_bindings \
        WHERE end_s > $1 AND start_s < $2 GROUP BY resource";
    USED_BETWEEN = "SELECT resource, CAST(SUM(nodes * CASE WHEN run_time_us < ended_us - $1 THEN run_time_us \
        ELSE ended_us - $1 END) AS BIGINT) AS used_us FROM executions WHERE ended_us > $1 AND ended_us <= $2 \
        GROUP BY resource";

    // Executions.
    EXECUTIONS = "SELECT agreement, ended_us, application, version, arguments, input_bytes, output_bytes, resource, \
        nodes, planned_start_s, planned_end_s, estimate_s, queue_time_us, run_time_us, transfer_in_us, \
        transfer_out_us, moved_in_bytes, moved_out_bytes, outcome, exit_status FROM executions WHERE agreement = $1 ORDER BY ended_us";

    // History, for prediction: the applications, the resources of each, and the end of the execution that has $1 newer ones there, 0
    // where there are fewer. One step in the index finds each of them, so that no other rows are looked at.
    HISTORIES = "WITH RECURSIVE applications (application) AS (SELECT MIN(application) FROM executions \
        UNION ALL SELECT (SELECT MIN(e.application) FROM executions e WHERE e.application > a.application) \
        FROM applications a WHERE a.application IS NOT NULL), \
        places (application, resource) AS (SELECT a.application, (SELECT MIN(e.resource) FROM executions e \
        WHERE e.application = a.application) FROM applications a WHERE a.application IS NOT NULL \
        UNION ALL SELECT p.application, (SELECT MIN(e.resource) FROM executions e WHERE e.application = p.application \
        AND e.resource > p.resource) FROM places p WHERE p.resource IS NOT NULL) \
        SELECT p.application, p.resource, COALESCE((SELECT e.ended_us FROM executions e WHERE e.application = p.application \
        AND e.resource = p.resource ORDER BY e.ended_us DESC LIMIT 1 OFFSET $1), 0) AS ended_us \
        FROM places p WHERE p.resource IS NOT NULL";
    PAST_EXECUTIONS = "SELECT e.agreement, e.ended_us, e.application, e.version, e.arguments, e.input_bytes, \
        e.output_bytes, e.resource, e.nodes, e.planned_start_s, e.planned_end_s, e.estimate_s, e.queue_time_us, \
        e.run_time_us, e.transfer_in_us, e.transfer_out_us, e.moved_in_bytes, e.moved_out_bytes, e.outcome, e.exit_status, a.party, a.created_us \
        FROM executions e JOIN agreements a ON a.id = e.agreement WHERE e.application = $1 AND e.resource = $2 AND e.ended_us >= $3 \
        ORDER BY e.ended_us DESC LIMIT $4";
    NTH_LAST_EXECUTION = "SELECT ended_us FROM executions ORDER BY ended_us DESC LIMIT 1 OFFSET $1";
    PRUNABLE_EXECUTIONS = "SELECT e.agreement, e.ended_us, e.application, e.version, e.arguments, e.input_bytes, \
        e.output_bytes, e.resource, e.nodes, e.planned_start_s, e.planned_end_s, e.estimate_s, e.queue_time_us, \
        e.run_time_us, e.transfer_in_us, e.transfer_out_us, e.moved_in_bytes, e.moved_out_bytes, e.outcome, e.exit_status, a.party, a.created_us \
        FROM (SELECT *, RANK() OVER (PARTITION BY application, resource ORDER BY ended_us DESC) \
        AS place FROM executions WHERE EXISTS (SELECT 1 FROM executions o WHERE o.ended_us < $1)) AS e JOIN agreements a ON a.id = e.agreement WHERE e.ended_us < $1 AND e.place > $2 \
        AND a.state IN ('Rejected', 'Complete', 'Terminated') ORDER BY e.ended_us LIMIT $3";
    DELETE_EXECUTION = "DELETE FROM executions WHERE agreement = $1 AND ended_us = $2 RETURNING agreement, ended_us, application, \
        version, arguments, input_bytes, output_bytes, resource, nodes, planned_start_s, planned_end_s, estimate_s, queue_time_us, \
        run_time_us, transfer_in_us, transfer_out_us, moved_in_bytes, moved_out_bytes, outcome, exit_status";
    ADD_EXECUTION_HOUR = "INSERT INTO execution_hours (application, version, resource, outcome, hour_s, runs, \
        queue_time_us, run_time_us, input_bytes, output_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
        ON CONFLICT (application, version, resource, outcome, hour_s) DO UPDATE SET \
        runs = execution_hours.runs + excluded.runs, \
        queue_time_us = execution_hours.queue_time_us + excluded.queue_time_us, \
        run_time_us = execution_hours.run_time_us + excluded.run_time_us, \
        input_bytes = execution_hours.input_bytes + excluded.input_bytes, \
        output_bytes = execution_hours.output_bytes + excluded.output_bytes";
    EXECUTION_HOURS = "SELECT application, version, resource, outcome, hour_s, runs, queue_time_us, run_time_us, \
        input_bytes, output_bytes FROM execution_hours ORDER BY application, version, resource, outcome, hour_s";
    KEPT_EXECUTION_HOURS = "SELECT application, COALESCE(version, '') AS version, resource, outcome, \
        ended_us / 3600000000 * 3600 AS hour_s, COUNT(*) AS runs, CAST(SUM(queue_time_us) AS BIGINT) AS queue_time_us, \
        CAST(SUM(run_time_us) AS BIGINT) AS run_time_us, CAST(SUM(input_bytes) AS BIGINT) AS input_bytes, \
        CAST(SUM(output_bytes) AS BIGINT) AS output_bytes FROM executions GROUP BY application, COALESCE(version, ''), \
        resource, outcome, ended_us / 3600000000 * 3600 ORDER BY 1, 2, 3, 4, 5";
    LAST_EXECUTION = "SELECT ended_us FROM executions ORDER BY ended_us DESC LIMIT 1";
    INSERT_SAMPLE = "INSERT INTO resource_samples (resource, at_us, free_cpu_millionths, bandwidth_in, bandwidth_out, \
        nodes_up, transfer_in, transfer_out) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (resource, at_us) DO NOTHING";
    RESOURCE_HOURS = concat!("SELECT resource, hour_s, samples, free_cpu_millionths, bandwidth_in, bandwidth_out, \
        nodes_up, transfer_in, transfer_out FROM resource_hours WHERE hour_s >= $1 UNION ALL ", hourly_means!("at_us >= $2"),
        " ORDER BY resource, hour_s");
    FOLD_SAMPLES = concat!("INSERT INTO resource_hours (resource, hour_s, samples, free_cpu_millionths, bandwidth_in, \
        bandwidth_out, nodes_up, transfer_in, transfer_out) ", hourly_means!("at_us < $1"), " ON CONFLICT (resource, hour_s) DO NOTHING");
    FORGET_SAMPLES = "DELETE FROM resource_samples WHERE at_us < $1";
    FORGET_HOURS = "DELETE FROM resource_hours WHERE hour_s < $1";

    // Negotiations.
    NEGOTIATION = select_negotiation!("WHERE id = $1");
    NEGOTIATION_DOCUMENT = "SELECT document FROM negotiations WHERE id = $1";
    // In two parts: each has its index as long as no order is asked for. Negotiations that ran out of time and were never ended
    // stay in the table.
    OPEN_NEGOTIATIONS = concat!(
        select_negotiation!("WHERE ended_us IS NULL AND expires_s > $1 UNION "),
        select_negotiation!("WHERE ended_us IS NULL AND id IN (SELECT negotiation FROM offers \
            WHERE held_us IS NOT NULL AND released_us IS NULL)")
    );
    OFFERS_OF_OPEN = "SELECT id, negotiation, name, parent, creator, state, created_us, expires_s, terms, refusal, held_us, \
        released_us, agreement FROM offers WHERE negotiation IN (SELECT id FROM negotiations WHERE ended_us IS NULL \
        AND expires_s > $1 UNION SELECT negotiation FROM offers WHERE held_us IS NOT NULL AND released_us IS NULL) \
        ORDER BY negotiation, id";
    NEGOTIATIONS_GOING =
        select_negotiation!("WHERE ended_us IS NULL AND expires_s > $1 ORDER BY id DESC LIMIT $2");
    NEGOTIATIONS_GOING_OF =
        select_negotiation!("WHERE ended_us IS NULL AND expires_s > $1 AND party = $3 ORDER BY id DESC LIMIT $2");
    NEGOTIATIONS_NEWEST = list_negotiations!("");
    NEGOTIATIONS_NEWEST_OF = list_negotiations!("party = $7 AND ");
    PROPOSALS_ABOUT = select_negotiation!("WHERE agreement = $1 AND proposed IS NOT NULL AND ended_us IS NULL \
        AND expires_s > $2 ORDER BY id");
    AGREEMENTS_WITH_PROPOSALS = "SELECT agreement FROM negotiations WHERE party = $1 AND proposed IS NOT NULL \
        AND ended_us IS NULL AND expires_s > $2 AND EXISTS (SELECT 1 FROM offers WHERE negotiation = negotiations.id \
        AND held_us IS NOT NULL AND released_us IS NULL AND offers.expires_s > $2) ORDER BY negotiations.id LIMIT 100";
    WAS_PROPOSED = "SELECT n.id FROM offers o JOIN negotiations n ON n.id = o.negotiation WHERE o.agreement = $1 \
        AND n.proposed = $2";
    OFFER = select_offer!("WHERE id = $1");
    SUCCESSIONS = "SELECT old, new FROM successions WHERE old = $1 OR new = $1";
    // An agreement that is to be replaced counts while it is in force.
    OFFERS_HELD_OR_ACCEPTED = select_offer_with_agreements!("(o.held_us IS NOT NULL OR o.agreement IS NOT NULL)");
    OFFERS_HELD_NOW = select_offer_with_agreements!("o.held_us IS NOT NULL AND o.released_us IS NULL");
    OFFER_NAMED = select_offer!("WHERE negotiation = $1 AND name = $2");
    OFFERS_HELD = select_offer!("WHERE negotiation = $1 AND held_us IS NOT NULL AND released_us IS NULL ORDER BY id");
    OFFERS_OF = select_offer!("WHERE negotiation = $1 ORDER BY id");

    // The ledger. A posting takes an amount from one account and adds it to another.
    BALANCES = "SELECT account, currency, CAST(SUM(credits_micros + charges_micros) AS BIGINT) AS sum_micros \
        FROM ledger_days GROUP BY account, currency ORDER BY account, currency";
    BALANCES_OF = "SELECT account, currency, CAST(SUM(credits_micros + charges_micros) AS BIGINT) AS sum_micros \
        FROM ledger_days WHERE account = $1 GROUP BY account, currency ORDER BY currency";
    ENTRIES_NEWEST = "SELECT posting, at_us, account, amount_micros, currency, agreement, kind, detail FROM ledger \
        WHERE account <> 'provider' AND posting < $1 ORDER BY posting DESC LIMIT $2";
    ENTRIES_NEWEST_OF = "SELECT posting, at_us, account, amount_micros, currency, agreement, kind, detail FROM ledger \
        WHERE account = $3 AND posting < $1 ORDER BY posting DESC LIMIT $2";
    MONEY_OF_AGREEMENT = "SELECT currency, \
        CAST(SUM(CASE WHEN amount_micros < 0 THEN -amount_micros ELSE 0 END) AS BIGINT) AS charged_micros, \
        CAST(SUM(CASE WHEN amount_micros > 0 THEN amount_micros ELSE 0 END) AS BIGINT) AS paid_micros \
        FROM ledger WHERE agreement = $1 AND account LIKE 'party:%' GROUP BY currency ORDER BY currency";
    LEDGER_DAYS = "SELECT currency, day, credits_micros, charges_micros FROM ledger_days WHERE account = $1 \
        ORDER BY day, currency";
    // Postings have ids by their time; the bounds on these are for the index.
    ENTRIES_IN_TIME = "SELECT l.posting, l.at_us, l.account, l.amount_micros, l.currency, l.agreement, l.kind, l.detail, a.name, a.job \
        FROM ledger l JOIN agreements a ON a.id = l.agreement WHERE l.account = $1 AND l.posting > $2 AND l.posting < $3 \
        AND l.at_us >= $4 AND l.at_us < $5 ORDER BY l.posting DESC LIMIT $6";
    LIVE_ENTRIES_BETWEEN = "SELECT l.posting, l.at_us, l.account, l.amount_micros, l.currency, l.agreement, l.kind, l.detail \
        FROM agreements a CROSS JOIN ledger l \
        WHERE l.agreement = a.id AND a.state NOT IN ('Rejected', 'Complete', 'Terminated') AND a.id > $1 AND a.id <= $2 \
        ORDER BY l.agreement, l.posting, l.account";
    ENTRIES_BETWEEN = "SELECT posting, at_us, account, amount_micros, currency, agreement, kind, detail FROM ledger \
        WHERE agreement > $1 AND agreement <= $2 ORDER BY agreement, posting, account";
    UNBALANCED = "SELECT posting FROM ledger GROUP BY posting HAVING SUM(amount_micros) <> 0 OR COUNT(*) <> 2 \
        OR MIN(currency) <> MAX(currency) ORDER BY posting LIMIT $1";
    WRONG_DAYS = "SELECT account, currency, day FROM (SELECT account, currency, at_us / 86400000000 AS day, \
        CASE WHEN amount_micros > 0 THEN amount_micros ELSE 0 END AS credits_micros, \
        CASE WHEN amount_micros < 0 THEN amount_micros ELSE 0 END AS charges_micros FROM ledger \
        UNION ALL SELECT account, currency, day, -credits_micros, -charges_micros FROM ledger_days) AS both_sides \
        GROUP BY account, currency, day HAVING SUM(credits_micros) <> 0 OR SUM(charges_micros) <> 0 \
        ORDER BY account, currency, day LIMIT $1";

    // Idempotency.
    IDEMPOTENT = "SELECT party, key, request_hash, answer, created_us FROM idempotency \
        WHERE party = $1 AND key = $2";
    FORGET_IDEMPOTENT = "DELETE FROM idempotency WHERE (party, key) IN \
        (SELECT party, key FROM idempotency WHERE created_us < $1 LIMIT $2)";

    // Pending agreements and calls.
    OPEN_AT_PEERS = "SELECT * FROM peer_agreements WHERE settled_us IS NULL AND id > $1 ORDER BY id LIMIT $2";
    ALL_AT_PEER = "SELECT * FROM peer_agreements WHERE peer = $1 AND id > $2 ORDER BY id LIMIT $3";
    // What is over here or has left its peer, and is not settled with it.
    LEFT_PEERS = "SELECT p.id FROM peer_agreements p JOIN agreements a ON a.id = p.agreement WHERE p.settled_us IS NULL \
        AND (a.resource <> p.peer OR a.state IN ('Complete', 'Terminated', 'Rejected')) ORDER BY p.id LIMIT $1";
    PEERS_NEEDED = "SELECT r.name AS peer FROM resources r WHERE r.kind = 'peer' AND EXISTS (SELECT 1 FROM agreements a \
        WHERE a.resource = r.name AND a.state NOT IN ('Rejected', 'Complete', 'Terminated')) \
        UNION SELECT DISTINCT peer FROM peer_agreements WHERE settled_us IS NULL ORDER BY peer";
    SHARED_AT_PEERS = "SELECT peer, address FROM peer_agreements WHERE address IS NOT NULL GROUP BY peer, address \
        HAVING COUNT(*) > 1 ORDER BY peer, address LIMIT $1";
    PROMISES_OF_PEERS = "SELECT peer, CAST(SUM(1 - lost) AS BIGINT) AS kept, CAST(SUM(lost) AS BIGINT) AS broken FROM peer_agreements \
        WHERE settled_us IS NOT NULL GROUP BY peer ORDER BY peer";
    POSTED_TO_PEER = "SELECT CAST(COALESCE(SUM(amount_micros), 0) AS BIGINT) AS micros FROM ledger \
        WHERE agreement = $1 AND account = $2";
    OFFERS_BEING_ACCEPTED = "SELECT o.id, o.terms FROM pending_agreements p JOIN agreements a ON a.id = p.agreement \
        JOIN offers o ON o.id = p.offer WHERE a.state = 'Pending' AND o.terms IS NOT NULL";
    AT_PEERS = "SELECT * FROM peer_agreements WHERE agreement = $1 ORDER BY id";
    UNDECIDED = "SELECT p.agreement, a.party, d.document, d.template, p.acceptance, \
        p.reference_parameters, p.offer, k.id AS api_key, k.cap_micros, k.cap_currency FROM pending_agreements p \
        LEFT JOIN api_keys k ON k.id = p.api_key JOIN agreements a ON a.id = p.agreement JOIN agreement_documents d ON d.agreement = p.agreement \
        WHERE a.state = 'Pending' AND p.agreement > $1 ORDER BY p.agreement LIMIT $2";
    CALL_BACKS_DUE = "SELECT id, agreement, address, body, attempts, due_us, created_us, party, (SELECT r.secret \
        FROM registrations r WHERE r.party = due.party AND r.address IS NULL) AS secret FROM (SELECT c.id, c.agreement, \
        c.address, c.body, c.attempts, c.due_us, c.created_us, a.party, ROW_NUMBER() OVER (PARTITION BY a.party \
        ORDER BY c.due_us, c.id) AS place FROM call_backs c JOIN agreements a ON a.id = c.agreement \
        WHERE c.due_us <= $1) AS due WHERE place <= $3 ORDER BY due_us, id LIMIT $2";
    CALL_BACKS_WAITING = "SELECT COUNT(*) AS waiting FROM call_backs";
    CALL_BACK_DONE = "DELETE FROM call_backs WHERE id = $1";
    CALL_BACK_FAILED = "UPDATE call_backs SET created_us = CASE attempts WHEN 0 THEN $3 ELSE created_us END, \
        attempts = attempts + 1, due_us = $2 WHERE id = $1";

    // The events that parties are told of.
    PARTY_EVENTS = "SELECT party, number, id, at_us, kind, agreement, negotiation, state, planned_start_s, planned_end_s, \
        detail FROM party_events WHERE party = $1 AND number > $2 ORDER BY number LIMIT $3";
    STARTS_ANNOUNCED = "SELECT agreement, planned_start_s FROM party_events WHERE at_us > $1 AND kind = 'starting' \
        ORDER BY number";
    FORGET_PARTY_EVENTS = "DELETE FROM party_events WHERE at_us < $1";
    REGISTER = "INSERT INTO registrations (id, party, name, address, secret, created_us, told, attempts, failing_us, \
        due_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (party, name) DO UPDATE SET id = excluded.id, \
        address = excluded.address, secret = excluded.secret, created_us = excluded.created_us, \
        attempts = excluded.attempts, failing_us = excluded.failing_us, due_us = excluded.due_us";
    REGISTRATIONS = "SELECT id, party, name, address, secret, created_us, told, attempts, failing_us, due_us \
        FROM registrations WHERE party = $1 ORDER BY name";
    REGISTRATIONS_DUE = "SELECT id, party, name, address, secret, created_us, told, attempts, failing_us, due_us FROM \
        (SELECT r.id, r.party, r.name, r.address, r.secret, r.created_us, r.told, r.attempts, r.failing_us, r.due_us, \
        ROW_NUMBER() OVER (PARTITION BY r.party ORDER BY r.due_us, r.id) AS place FROM registrations r WHERE r.due_us <= $1 \
        AND r.address IS NOT NULL AND EXISTS (SELECT 1 FROM party_events e WHERE e.party = r.party \
        AND e.number > r.told) AND EXISTS (SELECT 1 FROM api_keys k WHERE k.party = r.party AND k.revoked_us IS NULL \
        AND (k.expires_us > $1 OR k.expires_us IS NULL))) AS due WHERE place <= $3 ORDER BY due_us, id LIMIT $2";
    IS_TO_BE_TOLD = "SELECT r.id FROM registrations r WHERE r.id = $1 AND EXISTS (SELECT 1 FROM api_keys k \
        WHERE k.party = r.party AND k.revoked_us IS NULL AND (k.expires_us > $2 OR k.expires_us IS NULL))";
    UNREGISTER = "DELETE FROM registrations WHERE party = $1 AND name = $2";
    REGISTRATION_GONE = "DELETE FROM registrations WHERE id = $1";
    TOLD = "UPDATE registrations SET told = $2, attempts = 0, failing_us = NULL, due_us = $3 WHERE id = $1";
    EVENTS_UNTIL = "SELECT MAX(number) AS newest, COUNT(*) AS many FROM party_events WHERE party = $1 AND number > $2 \
        AND at_us <= $3";
    EVENTS_DROPPED = "UPDATE registrations SET told = $2 WHERE id = $1 AND told < $2";
    TELLING_FAILED = "UPDATE registrations SET attempts = attempts + 1, failing_us = COALESCE(failing_us, $3), \
        due_us = $2 WHERE id = $1";

    // Replicas, and the local resources of each.
    PUT_REPLICA = "INSERT INTO replicas (name, address, digest, joined_us, schema_version) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (name) DO UPDATE SET address = excluded.address, digest = excluded.digest, \
        joined_us = excluded.joined_us, schema_version = excluded.schema_version";
    REPLICAS = "SELECT name, address, digest, joined_us, schema_version FROM replicas ORDER BY name";
    FORGET_REPLICA = "DELETE FROM replicas WHERE name = $1";
    RESOURCE_HOSTS = "SELECT resource, replica FROM resource_hosts";
    PUT_RESOURCE_HOST = "INSERT INTO resource_hosts (resource, replica) VALUES ($1, $2) ON CONFLICT (resource) \
        DO UPDATE SET replica = excluded.replica";
    RENAME_RESOURCE_HOST = "UPDATE resource_hosts SET replica = $2 WHERE replica = $1";

    // Keys and sessions.
    INSERT_KEY = "INSERT INTO api_keys (id, digest, party, role, label, created_us, expires_us, revoked_us, read_only, \
        cap_micros, cap_currency) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    KEYS = "SELECT id, digest, party, role, label, created_us, expires_us, revoked_us, read_only, cap_micros, cap_currency \
        FROM api_keys ORDER BY id";
    KEYS_LABELLED = "SELECT id, digest, party, role, label, created_us, expires_us, revoked_us, read_only, cap_micros, \
        cap_currency FROM api_keys WHERE party = $1 AND label = $2 AND revoked_us IS NULL ORDER BY id";
    PARTY_WITH_KEY = "SELECT party FROM api_keys WHERE party = $1 AND revoked_us IS NULL LIMIT 1";
    KEY_BY_DIGEST = "SELECT id, digest, party, role, label, created_us, expires_us, revoked_us, read_only, cap_micros, \
        cap_currency FROM api_keys WHERE digest = $1";
    KEY = "SELECT id, digest, party, role, label, created_us, expires_us, revoked_us, read_only, cap_micros, cap_currency \
        FROM api_keys WHERE id = $1";
    // Of the last key of operators without limits only where the last parameter allows it.
    REVOKE_KEY = "UPDATE api_keys SET revoked_us = $2 WHERE id = $1 AND revoked_us IS NULL AND ($3 = 1 \
        OR role <> 'operator' OR EXISTS (SELECT 1 FROM api_keys o WHERE o.id <> $1 AND o.role = 'operator' \
        AND o.revoked_us IS NULL AND (o.expires_us IS NULL OR o.expires_us > $2 AND o.expires_us >= api_keys.expires_us) \
        AND o.read_only = 0 AND o.cap_micros IS NULL))";
    RENEW_KEY = "UPDATE api_keys SET digest = $2 WHERE id = $1 AND revoked_us IS NULL";
    EXPIRE_KEY = "UPDATE api_keys SET expires_us = $4 WHERE id = $1 AND revoked_us IS NULL \
        AND (expires_us IS NULL OR expires_us > $2) AND ($3 = 1 OR role <> 'operator' \
        OR COALESCE($4, 9223372036854775807) >= COALESCE(expires_us, 9223372036854775807) \
        OR EXISTS (SELECT 1 FROM api_keys o WHERE o.id <> $1 AND o.role = 'operator' \
        AND o.revoked_us IS NULL AND (o.expires_us IS NULL OR o.expires_us > $2 AND o.expires_us >= api_keys.expires_us) \
        AND o.read_only = 0 AND o.cap_micros IS NULL))";
    SPENT = "SELECT api_key, CAST(SUM(micros) AS BIGINT) AS sum_micros FROM spendings GROUP BY api_key";
    INSERT_SESSION = "INSERT INTO sessions (digest, api_key, expires_us) VALUES ($1, $2, $3)";
    SESSION = "SELECT k.id, k.digest, k.party, k.role, k.label, k.created_us, k.expires_us, k.revoked_us, \
        k.read_only, k.cap_micros, k.cap_currency, s.expires_us AS session_expires_us FROM sessions s JOIN api_keys k ON k.id = s.api_key WHERE s.digest = $1";
    EXTEND_SESSION = "UPDATE sessions SET expires_us = $2 WHERE digest = $1 AND expires_us < $2";
    DELETE_SESSION = "DELETE FROM sessions WHERE digest = $1";
    FORGET_SESSIONS = "DELETE FROM sessions WHERE expires_us <= $1";
    FORGET_OLDEST_SESSIONS = "DELETE FROM sessions WHERE api_key = $1 AND digest NOT IN (SELECT digest FROM sessions \
        WHERE api_key = $1 ORDER BY expires_us DESC, digest LIMIT $2)";

    // The files of parties.
    BEGIN_PARTY_FILES = "INSERT INTO party_file_changes (id, origin, last_number, forgotten_number) VALUES (1, $1, 0, 0) \
        ON CONFLICT (id) DO NOTHING";
    PARTY_FILE_CHANGES = "SELECT origin, last_number, forgotten_number FROM party_file_changes WHERE id = 1";
    NEXT_PARTY_FILE_CHANGE = "UPDATE party_file_changes SET last_number = last_number + 1 WHERE id = 1 RETURNING last_number";
    PARTY_FILES_AFTER = "SELECT change_number, owner, name, content, bytes, sha256, written_us FROM party_files \
        WHERE change_number > $1 ORDER BY change_number LIMIT $2";
    PARTY_FILES_OF = "SELECT change_number, owner, name, content, bytes, sha256, written_us FROM party_files WHERE owner = $1";
    PARTY_FILE = "SELECT change_number, owner, name, content, bytes, sha256, written_us FROM party_files \
        WHERE owner = $1 AND name = $2";
    PUT_PARTY_FILE = "INSERT INTO party_files (change_number, owner, name, content, bytes, sha256, written_us) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (owner, name) DO UPDATE SET change_number = excluded.change_number, \
        content = excluded.content, bytes = excluded.bytes, sha256 = excluded.sha256, written_us = excluded.written_us";
    PUT_PARTY_FILE_PART = "INSERT INTO party_file_parts (content, number, bytes) VALUES ($1, $2, $3)";
    PARTY_FILE_PART = "SELECT bytes FROM party_file_parts WHERE content = $1 AND number = $2";
    FORGET_PARTY_FILE_PARTS = "DELETE FROM party_file_parts WHERE content = $1";
    FORGET_REMOVED_PARTY_FILES = "DELETE FROM party_files WHERE owner = $1 AND content IS NULL AND change_number NOT IN \
        (SELECT change_number FROM party_files WHERE owner = $1 AND content IS NULL ORDER BY change_number DESC LIMIT $2) \
        RETURNING change_number";
    PARTY_FILES_FORGOTTEN = "UPDATE party_file_changes SET forgotten_number = $1 WHERE id = 1 AND forgotten_number < $1";
}
