//! The plans that a server of PostgreSQL logs (`auto_explain`, in JSON).

use std::fs;

use serde_json::Value;
use tests::PgServer;

/// What makes a server able to log plans, those within functions included; from when on is for the
/// session to say (`auto_explain.log_min_duration`).
pub(crate) const LOGGING: [&str; 4] = [
    "shared_preload_libraries=auto_explain",
    "auto_explain.log_analyze=on",
    "auto_explain.log_nested_statements=on",
    "auto_explain.log_format=json",
];

/// The plans that the log holds, and their statements.
pub(crate) fn plans(server: &PgServer) -> Vec<Value> {
    let log = fs::read_to_string(server.socket_dir().join("log")).expect("a log");
    let texts = log.split(" plan:\n").skip(1).map(|text| {
        let lines = text.lines().take_while(|line| line.starts_with('\t'));
        lines.collect::<String>()
    });
    texts
        .map(|text| serde_json::from_str(&text).expect("a plan"))
        .collect()
}

/// Every step of a plan.
pub(crate) fn steps(plan: &Value) -> Vec<&Value> {
    let below = plan["Plans"].as_array().into_iter().flatten();
    std::iter::once(plan).chain(below.flat_map(steps)).collect()
}
