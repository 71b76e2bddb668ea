//! The functions that claim keyed rows: their texts, and what these have in common.

/// Claims at the front of stripes.
pub(super) fn front() -> String {
    filled(include_str!("claim_front.sql"))
}

/// Claims by a walk through keys.
pub(super) fn walk() -> String {
    filled(include_str!("claim_keyed.sql"))
}

/// Puts in for each line that is the name of a part.
fn filled(template: &str) -> String {
    let line = |line: &str| {
        let name = line.trim_start();
        let indent = " ".repeat(line.len() - name.len());
        let part = match name {
            ":settings" => SETTINGS,
            ":begin" => BEGIN,
            ":mark" => MARK,
            ":take" => TAKE,
            ":note" => NOTE,
            _ => return format!("{line}\n"),
        };
        let lines = part.lines().map(|line| format!("{indent}{line}\n"));
        lines.collect()
    };
    template.lines().map(line).collect()
}

/// One plan for all calls, along an index.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashagg = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_sort = off
SET jit = off";

/// Each statement has to see what others did before the guards were taken. `v_out`: the closed
/// destinations.
const BEGIN: &str = "IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'a claim of keyed events needs READ COMMITTED'
        USING ERRCODE = 'feature_not_supported',
              HINT = 'set default_transaction_isolation to ''read committed'' for this role';
END IF;
v_out := COALESCE(p_except, '{}') || ARRAY(
    SELECT destination FROM {destinations} WHERE hold_until > now());";

/// How far claims came in the stripe `u.stripe`, of both kinds.
const MARK: &str =
    "SELECT max(greatest(r.last_seq, CASE WHEN r.khash < 8 THEN r.first_seq END)) AS mark
FROM {runs} r
WHERE r.destination = '' AND r.khash IN (u.stripe, 16 + u.stripe)";

/// Takes the rows `v_tids`.
const TAKE: &str = "RETURN QUERY
    UPDATE {events} e
    SET attempts = e.attempts + 1, lease_token = p_token, lease_until = now() + p_lease
    WHERE e.ctid = ANY (v_tids)
    RETURNING e.*;
GET DIAGNOSTICS v_count = ROW_COUNT;
IF v_count <> cardinality(v_tids) THEN
    RAISE EXCEPTION 'keyed events were changed by hand while they were claimed'
        USING ERRCODE = 'serialization_failure';
END IF;";

/// Returns the note, of which `seq`, `attempts` and mostly `destination` are set already.
const NOTE: &str = "v_note.id := '00000000-0000-0000-0000-000000000000';
v_note.event_type := '';
v_note.destination := COALESCE(v_note.destination, '');
v_note.content_type := '';
v_note.payload := '';
v_note.created_at := now();
v_note.replays := 0;
v_note.shape := -1;
RETURN NEXT v_note;";
