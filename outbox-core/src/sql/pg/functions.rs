//! Statements as functions, which bring settings of the planner along.
//!
//! A statement that reads many rows in the order of an index is cheaper by a scan of the table and a
//! sort, as the planner sees it, where statistics lag behind the table, or where it doesn't know how many
//! rows are asked for. Above some cost it has the plan compiled too, each time, for longer than the
//! statement takes. A pooled connection carries no settings; a function does, for as long as it runs.

use super::claim::{FRESH, NOTES, PARKED, due_window, fresh_window};
use super::maintenance::STATS;
use super::settle::RELEASE_CLAIM;

/// Claims of so many rows or more are made by functions. For fewer, the limit leaves no choice.
pub(super) const LARGE: u32 = 1_000;

/// A statement, and what it takes and returns.
struct Function {
    name: &'static str,
    takes: &'static str,
    returns: String,
    body: String,
}

const EVENT: &str = "seq bigint, id uuid, event_type text, destination text, key text, \
    payload bytea, content_type text, aggregate_type text, aggregate_id text, headers text, \
    dedup_key text, created_at timestamptz, expires_at timestamptz, max_attempts integer, \
    attempts integer, replays integer, last_error text, lease_until timestamptz";

/// Creates the functions.
pub(super) fn create() -> String {
    let event = || EVENT.to_owned();
    let noted = || format!("{EVENT}, note bigint");
    let claim =
        |template: &str, rows: &str| template.replace(":rows", rows).replace(":notes", NOTES);
    let functions = [
        Function {
            name: "claim_fresh_v1",
            takes: "uuid, bigint, bigint, boolean, bigint, text[], bigint",
            returns: event(),
            body: claim(&FRESH.replace(", :notes", ""), "$7"),
        },
        Function {
            name: "claim_fresh_window_v1",
            takes: "uuid, bigint, bigint, boolean, bigint, text[], text[], text[], bigint, bigint",
            returns: noted(),
            body: claim(&fresh_window(), "$10"),
        },
        Function {
            name: "claim_due_window_v1",
            takes: "uuid, bigint, bigint, boolean, text[], text[], text[], bigint, bigint",
            returns: noted(),
            body: claim(&due_window(), "$9"),
        },
        Function {
            name: "claim_parked_v1",
            takes: "uuid, bigint, bigint, boolean, text, text[], text[], text[], bigint",
            returns: noted(),
            body: claim(PARKED, "$9"),
        },
        Function {
            name: "release_claim_v1",
            takes: "uuid, text, bigint",
            returns: "seq bigint".to_owned(),
            body: RELEASE_CLAIM.to_owned(),
        },
        Function {
            name: "stats_v1",
            takes: "bigint",
            returns: "pending bigint, claimed bigint, due bigint, parked bigint, oldest bigint, \
                dead bigint, blocked bigint"
                .to_owned(),
            body: STATS.to_owned(),
        },
    ];
    let texts = functions.iter().map(|function| {
        let Function {
            name,
            takes,
            returns,
            body,
        } = function;
        format!(
            "CREATE FUNCTION {{{name}}}({takes})
RETURNS TABLE ({returns})
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $function$
#variable_conflict use_column
BEGIN
RETURN QUERY
{body};
END
$function$;
"
        )
    });
    texts.collect::<Vec<_>>().join("\n")
}
