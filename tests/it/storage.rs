//! The cost of keeping an agreement.

use serde_json::json;

use crate::store::try_tamper;
use crate::support::fixture::column;
use crate::support::offers::{date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(an_agreement_takes_at_most_two_kilobytes);

/// Agreements of either kind, enough of them that the rounding of tables and indexes counts little.
const AGREEMENTS: u32 = 500;

/// Bytes for an agreement from a flat request, two kilobytes: all tables with their indexes, as small as the engine can make them.
const BYTES_MAX: u64 = 2_048;

/// Bytes of all tables and indexes once the room of deleted rows is given back.
async fn bytes(url: &str) -> u64 {
    let (vacuum, table, name) = if url.starts_with("sqlite:") {
        let pages =
            "(SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size) AS sizes";
        ("VACUUM", pages, "bytes")
    } else {
        let relations = "(SELECT SUM(pg_total_relation_size(oid)) AS bytes FROM pg_class WHERE relkind = 'r' \
            AND relnamespace = 'public'::regnamespace) AS sizes";
        ("VACUUM FULL", relations, "bytes")
    };
    try_tamper(url, vacuum).await.expect("nothing else uses it");
    let found = column(url, table, name).await.expect("sizes are known");
    found[0].parse().expect("a number")
}

async fn an_agreement_takes_at_most_two_kilobytes(url: String) {
    let mut server = Server::configured(
        Some(&url),
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 1000\n\
         [[application]]\nname = \"wait\"\nprogram = \"/bin/sleep\"\n\
         [[application.argument]]\nname = \"seconds\"\ntype = \"integer\"\nmin = 0\nmax = 60\n",
    );
    server.stop();
    let empty = bytes(&url).await;
    server.restart();
    let client = server.client();
    let start = hours_ahead(2);
    for _ in 0..AGREEMENTS {
        let wanted = json!({
            "application": "wait", "arguments": ["60"], "nodes": 1, "durationSeconds": 120,
            "window": { "start": date_time(start), "end": date_time(start + 7_200) },
        });
        client.post_json("/agreements", &wanted).await.created();
    }
    server.stop();
    let each = (bytes(&url).await - empty) / u64::from(AGREEMENTS);
    assert!(each <= BYTES_MAX, "{each} bytes for an agreement");
    server.restart();
    server.assert_verified();
}
