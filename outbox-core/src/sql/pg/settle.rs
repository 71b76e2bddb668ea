//! Ending, extending and giving back leases. Each statement runs in autocommit mode.

use super::sql;
use crate::Retention;
use crate::sql::{Sql, TableNames};

/// Statements that prove a lease.
#[derive(Debug)]
#[non_exhaustive]
pub struct SettleSql {
    /// Rows that are all published. `$1` seqs, ascending, each once; `$2` their tokens, or the only
    /// one. One row: the seqs left alone, or null.
    pub published: Sql,
    /// Any outcomes. `$1` seqs, ascending, `$2` tokens, `$3` kinds, `$4` µs, `$5` notes, `$6` reasons:
    /// the columns of [`Settling`](crate::sql::Settling). One row: the places changed, or null.
    pub mixed: Sql,
    /// `$1` seqs, `$2` tokens, `$3` µs. One row: the places changed, or null.
    pub extend: Sql,
    /// Which of the rows `$1` are open: `seq`, whether a token is on it.
    pub held: Sql,
    /// Gives back what the claim with token `$1` took, near the front of each shape; of keyed rows
    /// after the destination `$2` and the hash of the key `$3`, where it began to look for them, and of
    /// those before, which a walk that goes round comes to. One row for each. Lease expiry returns what it
    /// misses: for one, what lies behind 20,000 keyed rows that the claim's filters passed over.
    pub release_claim: Sql,
}

impl SettleSql {
    pub(super) fn new(names: &TableNames, retention: Retention) -> Self {
        let [published, mixed] = match retention {
            Retention::Keep => ["published_keep_v1", "mixed_keep_v1"],
            _ => ["published_v1", "mixed_v1"],
        };
        Self {
            published: sql(names, &format!("SELECT seqs FROM {{{published}}}($1, $2)")),
            mixed: sql(
                names,
                &format!("SELECT places FROM {{{mixed}}}($1, $2, $3, $4, $5, $6)"),
            ),
            extend: sql(names, "SELECT places FROM {extend_v1}($1, $2, $3)"),
            held: sql(names, "SELECT seq, held FROM {held_v1}($1)"),
            release_claim: sql(names, "SELECT FROM {release_claim_v1}($1, $2, $3)"),
        }
    }
}

/// With one token for all, which is the usual case, the statement does without looking up that of each
/// row. The index gives rows by `seq`, so that they are locked in that order.
///
/// Mostly all rows are there, and to count them is quicker than to return them. Where one isn't, what was
/// done is undone, and done again by a statement that tells which. The history is written when all rows are
/// deleted: in turn with each of them takes a tenth longer.
pub(super) fn published(keep: bool) -> String {
    let delete = |token: &str| DELETE.replace(":token", token);
    let gone = |token: &str| match keep {
        true => format!(
            "WITH gone AS ({} RETURNING e.*), history AS ({HISTORY})",
            delete(token)
        ),
        false => format!("WITH gone AS ({} RETURNING e.seq)", delete(token)),
    };
    let count = |token: &str| match keep {
        true => format!("{} SELECT count(*) INTO v_count FROM gone", gone(token)),
        false => format!("{}; GET DIAGNOSTICS v_count = ROW_COUNT", delete(token)),
    };
    format!(
        "DECLARE
    v_token CONSTANT uuid := $2[1];
    v_count bigint;
BEGIN
    IF cardinality($2) = 1 THEN
        {one};
    ELSE
        {each};
    END IF;
    IF v_count < cardinality($1) THEN
        RAISE no_data_found;
    END IF;
    RETURN NEXT;
EXCEPTION WHEN no_data_found THEN
    RETURN QUERY
    {again}
    SELECT array_agg(u.seq) FROM unnest($1) AS u(seq) WHERE u.seq NOT IN (SELECT seq FROM gone);
END;",
        one = count("v_token"),
        each = count(TOKEN),
        again = gone(TOKEN),
    )
}

const DELETE: &str = "DELETE FROM {events} AS e WHERE e.seq = ANY ($1) AND e.lease_token = :token";

/// The token for a row. A parameter that is an array would be copied for each.
const TOKEN: &str = "(ARRAY(SELECT unnest($2)))[
            least(width_bucket(e.seq, ARRAY(SELECT unnest($1))), cardinality($2))]";

const HISTORY: &str = "INSERT INTO {published} (seq, id, created_at, published_at, attempts, replays,
        event_type, destination, key, content_type, aggregate_type, aggregate_id, headers, dedup_key,
        last_error, payload)
    SELECT seq, id, created_at, now(), attempts, replays, event_type, destination, key,
        content_type, aggregate_type, aggregate_id, headers, dedup_key, last_error, payload
    FROM gone";

/// Rows are locked in the order of the input, which is that of `seq`. A statement of its own does it, so
/// that the next one sees what others committed meanwhile: it writes to a place in the table, and an
/// extension puts a row at another one.
///
/// The record of a block is written also where there is one, so that the end of the block comes before
/// this death or sees it.
pub(super) fn mixed(keep: bool) -> String {
    let history = if keep {
        format!(", history AS ({HISTORY} WHERE kind = 0)")
    } else {
        String::new()
    };
    format!(
        "PERFORM FROM unnest($1, $2) AS i(seq, token)
CROSS JOIN LATERAL (
    SELECT FROM {{events}} WHERE seq = i.seq AND lease_token = i.token FOR UPDATE
) e;
RETURN QUERY
{};",
        MIXED.replace(":history", &history)
    )
}

const MIXED: &str = "WITH mine AS MATERIALIZED (
    SELECT e.tid, i.place, i.kind, i.after, i.note, i.reason
    FROM unnest($1, $2, $3, $4, $5, $6)
        WITH ORDINALITY AS i(seq, token, kind, after, note, reason, place)
    CROSS JOIN LATERAL (
        SELECT ctid AS tid FROM {events}
        WHERE seq = i.seq AND lease_token = i.token OFFSET 0
    ) e
), again AS (
    UPDATE {events} AS e
    SET shape = CASE
            WHEN e.key IS NULL THEN 1
            WHEN m.kind = 3 OR m.after <= 0 THEN 2
            ELSE 4 END,
        available_at = CASE
            WHEN m.kind = 3 THEN least(e.available_at, now())
            ELSE now() + m.after * interval '1 microsecond' END,
        attempts = CASE WHEN m.kind = 1 THEN e.attempts ELSE greatest(e.attempts - 1, 0) END,
        last_error = COALESCE(m.note, e.last_error),
        lease_token = NULL, lease_until = NULL
    FROM mine m
    WHERE e.ctid = m.tid AND m.kind IN (1, 2, 3)
), gone AS (
    DELETE FROM {events} AS e USING mine m
    WHERE e.ctid = m.tid AND m.kind IN (0, 4)
    RETURNING e.*, m.kind, m.note, m.reason
):history, buried AS (
    INSERT INTO {dead} (seq, id, created_at, expires_at, dead_at, attempts, replays, max_attempts,
        event_type, destination, key, content_type, aggregate_type, aggregate_id, headers,
        dedup_key, reason, last_error, payload)
    SELECT seq, id, created_at, expires_at, now(), attempts, replays, max_attempts, event_type,
        destination, key, content_type, aggregate_type, aggregate_id, headers, dedup_key,
        COALESCE(reason, 'other'), COALESCE(note, last_error), payload
    FROM gone WHERE kind = 4
), blocks AS (
    INSERT INTO {blocked} AS b (destination, key, seq, since)
    SELECT DISTINCT ON (g.destination, g.key) g.destination, g.key, g.seq, now()
    FROM gone g JOIN {destinations} d ON d.destination = g.destination AND d.dead_head = 'block'
    WHERE g.kind = 4 AND g.key IS NOT NULL
    ORDER BY g.destination, g.key, g.seq
    ON CONFLICT (destination, key) DO UPDATE SET since = b.since
)
SELECT array_agg(place) FROM mine";

/// The ended lease of an event with a key is not extended. Whether it has ended is judged when the row
/// is locked: meanwhile a claim may have found so and begun another run of the key. Such a claim locks
/// the rows whose lease had ended, so that it comes either before or after this.
///
/// A locked row is written by its number: its last version may be at a place that this statement can't
/// read.
pub(super) const EXTEND: &str = "WITH locked AS MATERIALIZED (
    SELECT i.seq, i.place, e.alone, e.lease_until
    FROM (
        SELECT * FROM unnest($1, $2) WITH ORDINALITY AS u(seq, token, place)
        ORDER BY u.seq OFFSET 0
    ) i
    CROSS JOIN LATERAL (
        SELECT key IS NULL AS alone, lease_until FROM {events}
        WHERE seq = i.seq AND lease_token = i.token
        FOR UPDATE
    ) e
), mine AS MATERIALIZED (
    SELECT seq, place FROM locked WHERE alone OR lease_until > clock_timestamp()
), extended AS (
    UPDATE {events} AS e
    SET lease_until = now() + $3 * interval '1 microsecond'
    WHERE e.seq = ANY (ARRAY(SELECT seq FROM mine))
)
SELECT array_agg(place) FROM mine";

pub(super) const HELD: &str =
    "SELECT seq, lease_token IS NOT NULL FROM {events} WHERE seq = ANY ($1)";

pub(super) const RELEASE_CLAIM: &str = "WITH near AS MATERIALIZED (
    (SELECT seq, lease_token FROM {events} WHERE shape = 0
     ORDER BY seq LIMIT 20000)
    UNION ALL
    (SELECT seq, lease_token FROM {events} WHERE shape = 1
     ORDER BY available_at, seq LIMIT 10000)
    UNION ALL
    (SELECT seq, lease_token FROM {events} WHERE shape = 3
     ORDER BY destination, seq LIMIT 10000)
    UNION ALL
    SELECT f.seq, f.lease_token
    FROM {runs} r CROSS JOIN LATERAL (
        SELECT e.seq, e.lease_token FROM {events} e
        WHERE e.key IS NOT NULL AND (e.khash >> 60)::smallint = r.khash - 16 AND e.seq <= r.last_seq
        ORDER BY (e.khash >> 60)::smallint, e.seq LIMIT 20000) f
    WHERE r.destination = '' AND r.khash > 7
    UNION ALL
    (SELECT seq, lease_token FROM {events}
     WHERE key IS NOT NULL
       AND (khash >> 60, destination, khash) > ($3::bigint >> 60, $2, $3::bigint)
       AND COALESCE(destination, '') <> ALL (ARRAY(
           SELECT destination FROM {destinations} WHERE hold_until > now()))
     ORDER BY khash >> 60, destination, khash, seq LIMIT 20000)
    UNION ALL
    (SELECT seq, lease_token FROM {events}
     WHERE key IS NOT NULL
       AND (khash >> 60, destination, khash) > ($3::bigint >> 60, '', ($3::bigint >> 60) << 60)
       AND khash >> 60 = $3::bigint >> 60
       AND COALESCE(destination, '') <> ALL (ARRAY(
           SELECT destination FROM {destinations} WHERE hold_until > now()))
     ORDER BY khash >> 60, destination, khash, seq LIMIT 20000)
    UNION ALL
    (SELECT seq, lease_token FROM {events}
     WHERE key IS NOT NULL
       AND (khash >> 60, destination, khash) <= ($3::bigint >> 60, $2, $3::bigint)
       AND COALESCE(destination, '') <> ALL (ARRAY(
           SELECT destination FROM {destinations} WHERE hold_until > now()))
     ORDER BY khash >> 60, destination, khash, seq LIMIT 20000)
), mine AS MATERIALIZED (
    SELECT e.seq
    FROM (
        SELECT DISTINCT seq FROM near WHERE lease_token = $1 ORDER BY seq OFFSET 0
    ) n CROSS JOIN LATERAL (
        SELECT seq FROM {events}
        WHERE seq = n.seq AND lease_token = $1 AND lease_until > now()
        FOR UPDATE
    ) e
)
UPDATE {events} AS e
SET shape = CASE WHEN e.key IS NULL THEN 1 ELSE 2 END,
    available_at = least(e.available_at, now()),
    attempts = greatest(e.attempts - 1, 0), lease_token = NULL, lease_until = NULL
WHERE e.seq = ANY (ARRAY(SELECT seq FROM mine))
RETURNING e.seq";
