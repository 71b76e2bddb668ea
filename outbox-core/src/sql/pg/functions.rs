//! Statements as functions, which bring settings of the planner along.
//!
//! A session keeps the plan of a prepared statement. One that was made while a table was small scans it;
//! and goes on to scan it when it is large, until the server looks at the table again. Where statistics
//! lag behind, or where the planner doesn't know how many rows are asked for, it takes a scan and a sort
//! for cheaper than the index, and may have the plan compiled, each time, for longer than the statement
//! takes. A pooled connection carries no settings; a function does, for as long as it runs.
//!
//! Such a call costs no more than the statement: it is planned once for each session, for any values.
//! What joins the table with what the caller gave names the one by a correlated sub-select, since the
//! planner is free to turn a join round and to read an index from end to end.

use super::claim::{FRESH, NOTES, PARKED, due_window, fresh_window};
use super::dead_letters::{discard_letters, replay_letters};
use super::maintenance::{PRUNE_DEDUP, PRUNE_DISCARDS, PRUNE_PUBLISHED, STATS, prune_dead};
use super::settle::{EXTEND, HELD, RELEASE_CLAIM, mixed, published};

/// A statement, and what it takes and returns.
pub(super) struct Function {
    name: &'static str,
    takes: String,
    returns: String,
    /// Statements of PL/pgSQL.
    body: String,
    settings: &'static str,
}

/// One plan for all calls, along an index.
const INDEXED: &str = "SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET max_parallel_workers_per_gather = 0
SET jit = off";
/// A plan for each call: what is the best way depends on which filters are given.
const BY_VALUES: &str = "SET plan_cache_mode = force_custom_plan
SET jit = off";

impl Function {
    /// One that makes one statement.
    pub(super) fn new(
        name: &'static str,
        takes: impl Into<String>,
        returns: impl Into<String>,
        statement: &str,
    ) -> Self {
        Self {
            name,
            takes: takes.into(),
            returns: returns.into(),
            body: format!("RETURN QUERY\n{statement};"),
            settings: INDEXED,
        }
    }
}

const EVENT: &str = "seq bigint, id uuid, event_type text, destination text, key text, \
    payload bytea, content_type text, aggregate_type text, aggregate_id text, headers text, \
    dedup_key text, created_at timestamptz, expires_at timestamptz, max_attempts integer, \
    attempts integer, replays integer, last_error text, lease_until timestamptz";

/// Creates the functions of a relay's store.
pub(super) fn create() -> String {
    let functions = claims().into_iter().chain(settles()).chain(upkeep());
    texts(functions)
}

/// Creates the functions of receivers.
pub(super) fn create_receiving() -> String {
    texts(super::idempotency::functions())
}

fn texts(functions: impl IntoIterator<Item = Function>) -> String {
    let texts = functions.into_iter().map(|function| {
        let Function {
            name,
            takes,
            returns,
            body,
            settings,
        } = function;
        format!(
            "CREATE FUNCTION {{{name}}}({takes})
RETURNS TABLE ({returns})
LANGUAGE plpgsql VOLATILE
{settings}
AS $function$
#variable_conflict use_column
BEGIN
{body}
END
$function$;
"
        )
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn claims() -> [Function; 5] {
    let noted = || format!("{EVENT}, note bigint");
    let claim =
        |template: &str, rows: &str| template.replace(":rows", rows).replace(":notes", NOTES);
    [
        Function {
            name: "claim_fresh_v1",
            takes: "uuid, bigint, bigint, boolean, bigint, text[], bigint".to_owned(),
            returns: EVENT.to_owned(),
            body: FRESH.to_owned(),
            settings: INDEXED,
        },
        Function::new(
            "claim_fresh_window_v1",
            "uuid, bigint, bigint, boolean, bigint, text[], text[], text[], bigint, bigint",
            noted(),
            &claim(&fresh_window(), "$10"),
        ),
        Function::new(
            "claim_due_window_v1",
            "uuid, bigint, bigint, boolean, text[], text[], text[], bigint, bigint",
            noted(),
            &claim(&due_window(), "$9"),
        ),
        Function::new(
            "claim_parked_v1",
            "uuid, bigint, bigint, boolean, text, text[], text[], text[], bigint",
            noted(),
            &claim(PARKED, "$9"),
        ),
        Function::new("notes_v1", "", "notes bigint", &format!("SELECT {NOTES}")),
    ]
}

fn settles() -> Vec<Function> {
    let mut functions = vec![
        Function::new(
            "extend_v1",
            "bigint[], uuid[], bigint",
            "places bigint[]",
            EXTEND,
        ),
        Function::new("held_v1", "bigint[]", "seq bigint, held boolean", HELD),
        Function::new(
            "release_claim_v1",
            "uuid, text, bigint",
            "seq bigint",
            RELEASE_CLAIM,
        ),
    ];
    for (name, mixed_name, keep) in [
        ("published_v1", "mixed_v1", false),
        ("published_keep_v1", "mixed_keep_v1", true),
    ] {
        functions.push(Function {
            name,
            takes: "bigint[], uuid[]".to_owned(),
            returns: "seqs bigint[]".to_owned(),
            body: published(keep),
            settings: INDEXED,
        });
        functions.push(Function {
            name: mixed_name,
            takes: "bigint[], uuid[], smallint[], bigint[], text[], text[]".to_owned(),
            returns: "places bigint[]".to_owned(),
            body: mixed(keep),
            settings: INDEXED,
        });
    }
    functions
}

fn upkeep() -> Vec<Function> {
    let mut functions = vec![Function::new(
        "stats_v1",
        "bigint",
        "pending bigint, claimed bigint, due bigint, parked bigint, oldest bigint, dead bigint, \
            blocked bigint",
        STATS,
    )];
    let prunes = [
        ("prune_published_v1", PRUNE_PUBLISHED),
        ("prune_discards_v1", PRUNE_DISCARDS),
        ("prune_dedup_v1", PRUNE_DEDUP),
    ];
    for (name, statement) in prunes {
        let function = Function::new(name, "bigint, bigint", "pruned bigint", statement);
        functions.push(function);
    }
    let filter = "bigint[], uuid[], text, text, text, text, bigint";
    let unblocking = [
        (
            "prune_dead_v1",
            "bigint, bigint".to_owned(),
            prune_dead(),
            INDEXED,
        ),
        (
            "replay_v1",
            format!("{filter}, bigint, bigint, bigint"),
            replay_letters(),
            BY_VALUES,
        ),
        (
            "discard_v1",
            format!("{filter}, bigint, text"),
            discard_letters(),
            BY_VALUES,
        ),
    ];
    for (name, takes, body, settings) in unblocking {
        functions.push(Function {
            name,
            takes,
            returns: "letters bigint".to_owned(),
            body,
            settings,
        });
    }
    functions
}
