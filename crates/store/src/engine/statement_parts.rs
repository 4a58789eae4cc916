//! The parts that statements share: columns, and the kinds of lists.

/// The columns of an agreement, as [`crate::records::agreements`] reads them, and the number of the newest record of moves.
macro_rules! agreement_columns {
    () => {
        "id, party, name, template, resource, nodes, duration_s, ready_s, deadline_s, planned_start_s, \
         planned_end_s, job, guarantees, state, service, started_us, ended_us, outcome, exit_status, created_us, \
         version, fixed, price_micros, price_currency, leeway, origin, pieces, initiator_id, choices, \
         (SELECT MAX(number) FROM moves) AS newest_moves"
    };
}

/// Has the trail go on with a batch.
macro_rules! begin_batch {
    ($rest:literal) => {
        concat!(
            "UPDATE lease SET batch = $2, trail_number = $5, trail_hash = $6, sums = $7 WHERE id = 1 AND epoch = $1 \
             AND trail_number = $3 AND trail_hash = $4 ",
            $rest
        )
    };
}

macro_rules! select_agreement {
    ($rest:literal) => {
        concat!("SELECT ", agreement_columns!(), " FROM agreements ", $rest)
    };
}

/// Whether moves are recorded that rows may not have yet. Then a statement finds the rows of all times, and the reader looks at the time
/// of each where the agreement is ([`crate::records::moves`]).
macro_rules! moves_recorded {
    () => {
        "EXISTS (SELECT 1 FROM moves)"
    };
}

/// A page of the agreements of a kind that match a filter, out of the newest $7 of that kind, with what each has replaced and been
/// replaced by; all that match out of these where moves are recorded. A parameter stands first where its type is known.
macro_rules! list_agreements {
    ($which:literal, $order:literal) => {
        concat!(
            "SELECT ",
            agreement_columns!(),
            ", (SELECT old FROM successions WHERE new = agreements.id) AS supersedes, \
             (SELECT new FROM successions WHERE old = agreements.id) AS superseded_by FROM agreements WHERE id IN (SELECT id FROM \
             (SELECT id, name, state, planned_start_s, planned_end_s FROM agreements WHERE ",
            $which,
            " ORDER BY ",
            $order,
            " LIMIT $7) newest WHERE (state = $3 OR $3 IS NULL) AND (name = $4 OR $4 IS NULL) \
             AND (",
            moves_recorded!(),
            " OR (planned_end_s > $5 OR $5 IS NULL) AND (planned_start_s < $6 OR $6 IS NULL)) AND (($5 IS NULL AND $6 IS NULL) \
             OR state NOT IN ('Pending', 'PendingAndTerminating', 'Rejected')) ORDER BY id DESC LIMIT CASE WHEN ",
            moves_recorded!(),
            " THEN $7 ELSE $2 END) ORDER BY id DESC"
        )
    };
}

/// Where [`list_agreements`] ends to look from a place on: the last of the newest $2 + 1 agreements of a kind, and one more, where
/// there are so many.
macro_rules! last_newest {
    ($which:literal, $order:literal) => {
        concat!(
            "SELECT id FROM agreements WHERE ",
            $which,
            " ORDER BY ",
            $order,
            " LIMIT 2 OFFSET $2"
        )
    };
}

/// What a search asks of reservations, in the parameters $2 and $5 to $8: resource, name (as it is written, or in small letters) and id.
/// A parameter stands first where its type is known.
macro_rules! reservation_found {
    () => {
        "(resource = $2 OR $2 IS NULL) AND (name LIKE $5 ESCAPE '!' OR LOWER(name) LIKE $6 ESCAPE '!' OR id >= $7 AND id <= $8 OR $5 IS NULL) "
    };
}

/// A page of the reservations of a kind that are not over and match a filter, out of the first $12 of that kind by start; all that match
/// out of these where moves are recorded.
macro_rules! live_reservations {
    ($kind:literal, $which:literal, $order:literal) => {
        concat!(
            "SELECT ",
            agreement_columns!(),
            ", (SELECT old FROM successions WHERE new = agreements.id) AS supersedes, \
             CAST(NULL AS UUID) AS superseded_by FROM agreements WHERE id IN (SELECT id FROM \
             (SELECT id, resource, name, state, service, planned_start_s, planned_end_s FROM agreements \
             WHERE ",
            $kind,
            " AND ",
            $which,
            " ORDER BY ",
            $order,
            " LIMIT $12) first WHERE ",
            reservation_found!(),
            "AND ((service = 'NotReady' OR state IN ('Pending', 'PendingAndTerminating')) AND $1 = 'waiting' \
             OR service <> 'NotReady' AND $1 = 'running' OR $1 IS NULL) \
             AND (",
            moves_recorded!(),
            " OR (planned_end_s > $3 OR $3 IS NULL) AND (planned_start_s < $4 OR $4 IS NULL)) ORDER BY planned_start_s, id LIMIT CASE WHEN ",
            moves_recorded!(),
            " THEN $12 ELSE $11 END) ORDER BY planned_start_s, id"
        )
    };
}

/// A page of the reservations of a kind that are over and match a filter, out of the first $12 of that kind in their order: by start, the
/// latest first.
macro_rules! past_reservations {
    ($which:literal, $order:literal) => {
        concat!(
            "SELECT ",
            agreement_columns!(),
            ", (SELECT old FROM successions WHERE new = agreements.id) AS supersedes, \
             (SELECT new FROM successions WHERE old = agreements.id) AS superseded_by FROM agreements WHERE id IN (SELECT id FROM \
             (SELECT id, resource, name, state, outcome, planned_start_s, planned_end_s FROM agreements \
             WHERE state || '' IN ('Rejected', 'Complete', 'Terminated') AND ",
            $which,
            " ORDER BY ",
            $order,
            " LIMIT $12) latest WHERE ",
            reservation_found!(),
            "AND (state = 'Complete' AND outcome = 'completed' AND $1 = 'done' \
             OR state = 'Complete' AND outcome NOT IN ('completed', 'lost') AND $1 = 'failed' \
             OR state = 'Complete' AND outcome = 'lost' AND $1 = 'lost' \
             OR state = 'Complete' AND outcome IS NULL AND $1 = 'changed' OR state = 'Terminated' AND $1 = 'cancelled' \
             OR state = 'Rejected' AND $1 = 'refused' OR $1 IS NULL) \
             AND (planned_end_s > $3 OR $3 IS NULL) AND (planned_start_s < $4 OR $4 IS NULL) \
             ORDER BY planned_start_s DESC, id DESC LIMIT $11) ORDER BY planned_start_s DESC, id DESC"
        )
    };
}

/// A page of the negotiations of a kind that match a filter, by their states at $4.
macro_rules! list_negotiations {
    ($which:literal) => {
        concat!(
            "SELECT id, party, agreement, created_us, expires_s, ended_us, proposed FROM negotiations WHERE ",
            $which,
            "id < $1 AND (expires_s > $4 AND ended_us IS NULL AND $3 = 'open' \
             OR expires_s <= $4 AND ended_us IS NULL AND $3 = 'expired' \
             OR ended_us IS NOT NULL AND $3 = 'terminated' OR $3 IS NULL) AND (created_us >= $5 OR $5 IS NULL) \
             AND (created_us < $6 OR $6 IS NULL) ORDER BY id DESC LIMIT $2"
        )
    };
}

/// The columns of a negotiation, as [`crate::records::negotiations`] reads them.
macro_rules! select_negotiation {
    ($rest:literal) => {
        concat!(
            "SELECT id, party, agreement, created_us, expires_s, ended_us, proposed FROM negotiations ",
            $rest
        )
    };
}

/// The columns of an offer, as [`crate::records::negotiations`] reads them.
macro_rules! select_offer {
    ($rest:literal) => {
        concat!(
            "SELECT id, negotiation, name, parent, creator, state, created_us, expires_s, terms, refusal, held_us, \
             released_us, agreement, document FROM offers ",
            $rest
        )
    };
}

/// Offers of a kind after one, with the rows that they are checked against.
macro_rules! select_offer_with_agreements {
    ($which:literal) => {
        concat!(
            "SELECT o.id, o.negotiation, o.name, o.parent, o.creator, o.state, o.created_us, \
        o.expires_s, o.terms, o.refusal, o.held_us, o.released_us, o.agreement, n.party, n.ended_us, \
        CASE WHEN n.proposed = 'broken' THEN NULL ELSE n.agreement END AS changed, \
        a.party AS accepting_party, a.created_us AS accepted_us, r.resource AS replaced_resource, \
        r.version AS replaced_version, r.planned_start_s AS replaced_start_s, r.planned_end_s AS replaced_end_s, r.nodes AS replaced_nodes, r.pieces AS replaced_pieces \
        FROM offers o JOIN negotiations n ON n.id = o.negotiation LEFT JOIN agreements a ON a.id = o.agreement \
        LEFT JOIN agreements r ON r.id = n.agreement AND r.state = 'Observed' AND r.service <> 'Completed' \
        WHERE o.id > $1 AND ",
            $which,
            " ORDER BY o.id LIMIT $2"
        )
    };
}

/// The means of samples over whole hours, in whole numbers as both engines divide them.
macro_rules! hourly_means {
    ($which:literal) => {
        concat!(
            "SELECT resource, at_us / 3600000000 * 3600 AS hour_s, COUNT(*) AS samples, \
             CAST(SUM(free_cpu_millionths) AS BIGINT) / NULLIF(COUNT(free_cpu_millionths), 0) AS free_cpu_millionths, \
             CAST(SUM(bandwidth_in) AS BIGINT) / NULLIF(COUNT(bandwidth_in), 0) AS bandwidth_in, \
             CAST(SUM(bandwidth_out) AS BIGINT) / NULLIF(COUNT(bandwidth_out), 0) AS bandwidth_out, \
             CAST(SUM(nodes_up) AS BIGINT) / NULLIF(COUNT(nodes_up), 0) AS nodes_up, \
             CAST(SUM(transfer_in) AS BIGINT) / NULLIF(COUNT(transfer_in), 0) AS transfer_in, \
             CAST(SUM(transfer_out) AS BIGINT) / NULLIF(COUNT(transfer_out), 0) AS transfer_out \
             FROM resource_samples WHERE ",
            $which,
            " GROUP BY resource, at_us / 3600000000 * 3600"
        )
    };
}

pub(super) use {
    agreement_columns, begin_batch, hourly_means, last_newest, list_agreements, list_negotiations,
    live_reservations, moves_recorded, past_reservations, reservation_found, select_agreement,
    select_negotiation, select_offer, select_offer_with_agreements,
};
