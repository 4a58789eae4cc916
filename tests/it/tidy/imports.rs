//! Which module of the service may import which. What a crate may name is in its manifest, and the compiler holds it to that.

/// No limit.
pub(super) const ANY: &[&str] = &["*"];

/// Modules of `src/`, and which modules and crates of ours each may name. `ANY` is all of them.
pub(super) const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("src/main.rs", &["bespeak", "cli"]),
    ("src/lib.rs", ANY),
    ("src/cli", ANY),
    (
        "src/http",
        &[
            "access",
            "domain",
            "metrics",
            "negotiation",
            "replicas",
            "task",
            "wsag",
        ],
    ),
    ("src/portal", &["access", "domain", "http", "negotiation", "wsag"]),
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
        "src/negotiation",
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
    (
        "src/callbacks",
        &["address", "domain", "metrics", "store", "task"],
    ),
];
