//! Ending the blocks of keys whose last dead letter goes.

/// The statements of a function that takes letters away by `remove`, a list of common table expressions
/// of which `gone` has the letters' `destination` and `key`, and answers the number of rows of
/// `counted`.
///
/// Two such calls, and a death of one more event of the key, don't see each other's letters. So the
/// record of the block is locked, and then a statement of its own looks what letters are left.
pub(super) fn unblocking(remove: &str, counted: &str) -> String {
    BODY.replace(":remove", remove).replace(":counted", counted)
}

const BODY: &str = "DECLARE
    v_count bigint;
    v_destinations text[];
    v_keys text[];
BEGIN
WITH :remove, keys AS (
    SELECT DISTINCT destination, key FROM gone WHERE key IS NOT NULL
)
SELECT (SELECT count(*) FROM :counted), array_agg(destination), array_agg(key)
INTO v_count, v_destinations, v_keys FROM keys;
IF v_keys IS NOT NULL THEN
    PERFORM FROM (
        SELECT * FROM unnest(v_destinations, v_keys) AS u(destination, key)
        ORDER BY u.destination COLLATE \"C\", u.key COLLATE \"C\" OFFSET 0
    ) g CROSS JOIN LATERAL (
        SELECT FROM {blocked} WHERE destination = g.destination AND key = g.key FOR UPDATE
    ) b;
    DELETE FROM {blocked}
    WHERE ctid = ANY (ARRAY(
        SELECT b.tid
        FROM unnest(v_destinations, v_keys) AS g(destination, key) CROSS JOIN LATERAL (
            SELECT ctid AS tid FROM {blocked}
            WHERE destination = g.destination AND key = g.key OFFSET 0
        ) b
        WHERE (SELECT 1 FROM {dead} d
               WHERE d.destination = g.destination AND d.key = g.key LIMIT 1) IS NULL));
END IF;
RETURN QUERY SELECT v_count;
END;";
