//! Which module may import which.

/// No limit.
pub(super) const ANY: &[&str] = &["*"];

/// Modules of `src/` and member crates, and which of ours each may name. `ANY` is all of them.
///
/// `address`, `clock`, `catalogue` and `metrics` are leaves that every module of the service may name; they are listed where used so that
/// the table is complete.
pub(super) const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("src/main.rs", &["bespeak", "cli"]),
    ("src/lib.rs", ANY),
    ("src/cli", ANY),
    (
        "src/http",
        &[
            "access",
            "agreement",
            "catalogue",
            "clock",
            "metrics",
            "negotiation",
            "replicas",
            "task",
            "wsag",
        ],
    ),
    (
        "src/portal",
        &[
            "access",
            "agreement",
            "catalogue",
            "clock",
            "http",
            "negotiation",
            "wsag",
        ],
    ),
    // Of execution it names the questions of a process to its leader.
    (
        "src/replicas",
        &[
            "address",
            "agreement",
            "clock",
            "execution",
            "planner",
            "store",
            "task",
        ],
    ),
    // The one place where documents meet requests. Of execution it names the jobs' folders, to show a job's output.
    (
        "src/negotiation",
        &[
            "address",
            "agreement",
            "callbacks",
            "catalogue",
            "clock",
            "execution",
            "federation",
            "metrics",
            "planner",
            "prediction",
            "replicas",
            "scheduler",
            "store",
            "task",
            "wsag",
        ],
    ),
    ("src/access", &["address", "agreement", "clock", "store", "task"]),
    (
        "src/planner",
        &[
            "agreement",
            "clock",
            "metrics",
            "prediction",
            "scheduler",
            "store",
            "task",
        ],
    ),
    (
        "src/execution",
        &[
            "address",
            "agreement",
            "catalogue",
            "clock",
            "metrics",
            "planner",
            "scheduler",
            "store",
            "task",
        ],
    ),
    (
        "src/prediction",
        &["agreement", "clock", "scheduler", "store", "task"],
    ),
    (
        "src/federation",
        &[
            "address",
            "agreement",
            "clock",
            "execution",
            "metrics",
            "planner",
            "scheduler",
            "store",
            "task",
            "wsag",
        ],
    ),
    (
        "src/callbacks",
        &["address", "agreement", "clock", "metrics", "store", "task"],
    ),
    ("src/store", &["agreement", "clock", "scheduler"]),
    // The expression language of guarantee terms is part of the documents.
    ("src/agreement", &["clock", "scheduler", "wsag"]),
    ("src/address", &[]),
    ("src/task", &[]),
    ("src/catalogue", &["clock"]),
    ("src/metrics", &[]),
    ("src/clock", &["scheduler", "task"]),
    ("crates/lab", &["advisor", "scheduler"]),
    ("crates/advisor", &["scheduler"]),
    ("crates/wsag", &[]),
    ("crates/scheduler", &[]),
];
