//! The cost of the database alone: `pgbench` writes the rows of an offer, a transaction each, into tables like ours in a schema
//! beside them.

use std::io::Write;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::Failure;

/// Tables like ours, with their indexes.
const TABLES: &str = "DROP SCHEMA IF EXISTS bench CASCADE;
CREATE SCHEMA bench;
CREATE TABLE bench.agreements (LIKE public.agreements INCLUDING ALL);
CREATE TABLE bench.agreement_documents (LIKE public.agreement_documents INCLUDING ALL);
CREATE TABLE bench.events (LIKE public.events INCLUDING ALL);
CREATE TABLE bench.lease (LIKE public.lease INCLUDING ALL);
INSERT INTO bench.lease SELECT * FROM public.lease;
";

/// The transaction of an offer, with as many bytes as ours.
const OFFER: &str = r"\set a random(1, 9000000000000000000)
\set b random(1, 9000000000000000000)
BEGIN;
INSERT INTO bench.agreements (id, party, name, template, resource, nodes, duration_s, ready_s, deadline_s, planned_start_s,
planned_end_s, pieces, leeway, choices, guarantees, state, service, created_us, version, fixed)
VALUES ((lpad(to_hex(:a::bigint), 16, '0') || lpad(to_hex(:b::bigint), 16, '0'))::uuid, 'operator', NULL, 'advance-reservation', 'local', 1,
3600, :a::bigint / 1000000, :a::bigint / 1000000 + 86400, :a::bigint / 1000000, :a::bigint / 1000000 + 3600, '[]', '{}', '[]', repeat('g', 400), 'Observed', 'NotReady', :a::bigint, 1, 0);
INSERT INTO bench.agreement_documents (agreement, document)
VALUES ((lpad(to_hex(:a::bigint), 16, '0') || lpad(to_hex(:b::bigint), 16, '0'))::uuid, repeat('d', 2400));
INSERT INTO bench.events (agreement, seq, at_us, kind, detail, version, state, service, number, hash)
VALUES ((lpad(to_hex(:a::bigint), 16, '0') || lpad(to_hex(:b::bigint), 16, '0'))::uuid, 1, :a::bigint, 'accepted', repeat('e', 80), 1, 'Observed', 'NotReady', :a::bigint,
md5(:a::bigint::text) || md5(:b::bigint::text));
END;
";

/// One transaction of one row.
const COMMIT: &str = "UPDATE bench.lease SET batch = gen_random_uuid();\n";

/// Makes the tables.
pub(super) async fn prepare_tables(url: &str) -> Result<(), Failure> {
    run_pgbench(url, TABLES, &["-t", "1", "-M", "simple"])
        .await
        .map(drop)
}

/// Removes them.
pub(super) async fn remove_tables(url: &str) -> Result<(), Failure> {
    let gone = "DROP SCHEMA IF EXISTS bench CASCADE;\n";
    run_pgbench(url, gone, &["-t", "1", "-M", "simple"])
        .await
        .map(drop)
}

/// Transactions a second of as many clients.
pub(super) async fn measure_offers(url: &str, clients: u32, seconds: u32) -> Result<f64, Failure> {
    let (clients, seconds) = (clients.to_string(), seconds.to_string());
    let arguments = ["-c", &clients, "-j", "2", "-T", &seconds, "-M", "prepared"];
    run_pgbench(url, OFFER, &arguments).await
}

/// Milliseconds that one transaction of one row takes.
pub(super) async fn measure_commit(url: &str, seconds: u32) -> Result<Value, Failure> {
    let seconds = seconds.to_string();
    let rate = run_pgbench(url, COMMIT, &["-c", "1", "-T", &seconds, "-M", "prepared"]).await?;
    Ok(json!(1_000.0 / rate))
}

/// Runs a script. Returns the transactions a second that it reports.
async fn run_pgbench(url: &str, script: &str, arguments: &[&str]) -> Result<f64, Failure> {
    let unavailable = |why: std::io::Error| format!("pgbench: {why}");
    let mut file = create_script_file().map_err(unavailable)?;
    file.1.write_all(script.as_bytes()).map_err(unavailable)?;
    let done = Command::new("pgbench")
        .args(["-n", "-f"])
        .arg(&file.0)
        .args(arguments)
        .arg(url)
        .output()
        .await
        .map_err(unavailable)?;
    let _ = std::fs::remove_file(&file.0);
    let said = String::from_utf8_lossy(&done.stdout);
    let rate = said.lines().find_map(|line| {
        let rate = line.strip_prefix("tps = ")?;
        rate.split(' ').next()?.parse().ok()
    });
    rate.filter(|_| done.status.success()).ok_or_else(|| {
        let why = String::from_utf8_lossy(&done.stderr);
        format!("pgbench: {}", why.trim()).into()
    })
}

/// A new file of this process.
fn create_script_file() -> std::io::Result<(std::path::PathBuf, std::fs::File)> {
    let path = std::env::temp_dir().join(format!("bespeak-pgbench-{}", uuid::Uuid::now_v7()));
    Ok((path.clone(), std::fs::File::create_new(path)?))
}
