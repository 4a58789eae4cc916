//! Which module of the service may import which, and who of them knows a library that one or two alone may know. What a crate may name
//! is in its manifest, and the compiler holds it to that.

/// No limit.
pub(super) const ANY: &[&str] = &["*"];

/// Libraries that a module of the service may name only where its row has them.
pub(super) const LIBRARIES: &[&str] = &["askama", "axum", "clap"];

/// Modules of `src/`, and which modules, crates of ours and such libraries each may name. `ANY` is all of them.
pub(super) const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("src/main.rs", &["bespeak", "cli"]),
    ("src/lib.rs", ANY),
    ("src/cli", ANY),
    (
        "src/http",
        &[
            "access", "axum", "domain", "metrics", "replicas", "service", "task", "wsag",
        ],
    ),
    (
        "src/portal",
        &["access", "askama", "axum", "domain", "http", "service", "wsag"],
    ),
    // Of execution it names the questions of a process to its leader.
    (
        "src/replicas",
        &[
            "address",
            "domain",
            "execution",
            "planner",
            "store",
            "task",
            "writer",
        ],
    ),
    // The one place where documents meet requests. Of execution it names the jobs' folders, to show a job's output.
    (
        "src/service",
        &[
            "address",
            "callbacks",
            "domain",
            "execution",
            "federation",
            "metrics",
            "planner",
            "prediction",
            "replicas",
            "scheduler",
            "store",
            "task",
            "writer",
            "wsag",
        ],
    ),
    ("src/access", &["address", "domain", "store", "task"]),
    (
        "src/federation",
        &[
            "address",
            "domain",
            "execution",
            "metrics",
            "planner",
            "scheduler",
            "store",
            "task",
            "writer",
            "wsag",
        ],
    ),
    ("src/callbacks", &["address", "domain", "store", "task"]),
];
