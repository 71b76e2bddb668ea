-- Claims runs of keys, from the key after (p_destination, p_khash) on and round once.
--
-- Each pass is three statements, and each statement of a VOLATILE function has a snapshot of its own
-- under READ COMMITTED: candidates; their guards (advisory locks, kept until commit); then, in a
-- snapshot that is taken while the guards are held, the state of each key, and the update.
-- One row more than the claimed ones is returned: shape -1, with the key that the next call starts
-- after, and in attempts 1 where keys were left that could not be looked at.
CREATE FUNCTION {claim_keyed_v1}(
    p_token uuid, p_lease interval, p_rows integer, p_bytes bigint, p_first boolean,
    p_destination text, p_khash bigint,
    p_types text[], p_only text[], p_except text[])
RETURNS SETOF {events}
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $claim_keyed$
#variable_conflict use_column
DECLARE
    v_class CONSTANT integer := '{events}'::regclass::oid::bigint::bit(32)::integer;
    v_out text[];
    v_pass integer := 0;
    v_budget integer := 1000;
    v_rows integer := p_rows;
    v_bytes bigint := p_bytes;
    v_wrapped boolean := p_destination = '';
    v_from_d text := p_destination;
    v_from_k bigint := p_khash;
    v_last_d text;
    v_last_k bigint;
    v_steps integer;
    v_found integer;
    v_target integer;
    v_d text[];
    v_key text[];
    v_k bigint[];
    v_guards integer[];
    v_tids tid[];
    v_size bigint;
    v_note {events};
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a claim of keyed events needs READ COMMITTED'
            USING ERRCODE = 'feature_not_supported',
                  HINT = 'set default_transaction_isolation to ''read committed'' for this role';
    END IF;
    v_out := COALESCE(p_except, '{}') || ARRAY(
        SELECT destination FROM {destinations} WHERE hold_until > now());

    WHILE v_rows > 0 AND v_bytes > 0 AND v_budget > 0 AND v_pass < 8 LOOP
        v_pass := v_pass + 1;
        v_target := (v_rows + 1) / 2;

        -- Candidates: one step of the index for each key, or for each destination that is left out.
        WITH RECURSIVE walk AS (
            SELECT v_from_d COLLATE "C" AS destination, v_from_k AS khash, NULL::text COLLATE "C" AS key,
                   true AS admitted, false AS ready, 0 AS step, 0 AS found
            UNION ALL
            SELECT n.destination, n.khash, n.key, n.admitted, n.ready, w.step + 1,
                   w.found + n.ready::integer
            FROM walk w CROSS JOIN LATERAL (
                SELECT x.destination, x.khash, x.key, x.admitted,
                       x.admitted AND x.available_at <= now()
                       AND (x.lease_until IS NULL OR x.lease_until <= now()) AS ready
                FROM (
                    SELECT e.destination, e.khash, e.key, e.available_at, e.lease_until,
                           e.destination <> ALL (v_out)
                           AND (p_only IS NULL OR e.destination = ANY (p_only)) AS admitted
                    FROM {events} e
                    WHERE e.key IS NOT NULL
                      AND (e.destination, e.khash) > (
                          w.destination,
                          CASE WHEN w.admitted THEN w.khash ELSE 9223372036854775807 END)
                    ORDER BY e.destination, e.khash, e.seq
                    LIMIT 1
                ) x
                WHERE NOT v_wrapped OR p_destination = ''
                   OR (x.destination, x.khash) <= (p_destination, p_khash)
            ) n
            WHERE w.step < v_budget AND w.found < v_target
        )
        SELECT array_agg(destination ORDER BY step) FILTER (WHERE ready),
               array_agg(khash ORDER BY step) FILTER (WHERE ready),
               array_agg(key ORDER BY step) FILTER (WHERE ready),
               max(step), max(found),
               (array_agg(destination ORDER BY step DESC))[1],
               (array_agg(khash ORDER BY step DESC))[1]
        INTO v_d, v_k, v_key, v_steps, v_found, v_last_d, v_last_k
        FROM walk;
        v_from_d := v_last_d;
        v_from_k := v_last_k;

        IF v_d IS NOT NULL THEN
            -- Guards: 64 of them, so that no claim fills the lock table. Nobody waits for one.
            SELECT array_agg(b) INTO v_guards
            FROM (SELECT DISTINCT ((k >> 58) & 63)::integer AS b FROM unnest(v_k) AS k ORDER BY 1) g
            WHERE pg_try_advisory_xact_lock(v_class, b);

            -- Runs: the rows of each key from its head, while they can be taken; none where a row
            -- near the front is under a lease. First rows first, so that keys share the limits.
            WITH runs AS MATERIALIZED (
                SELECT r.tid, r.rank, c.ord, r.size
                FROM unnest(v_d, v_k, v_key) WITH ORDINALITY AS c(destination, khash, key, ord)
                CROSS JOIN LATERAL (
                    SELECT x.tid, x.rank, x.size,
                           bool_and(x.due) OVER (ORDER BY x.rank) AS due,
                           bool_or(x.leased) OVER () AS leased
                    FROM (
                        SELECT e.ctid AS tid, octet_length(e.payload) AS size,
                               row_number() OVER (ORDER BY e.seq) AS rank,
                               COALESCE(e.lease_until > now(), false) AS leased,
                               e.available_at <= now()
                               AND (p_types IS NULL OR e.event_type = ANY (p_types)) AS due
                        FROM {events} e
                        WHERE e.key IS NOT NULL
                          AND e.destination = c.destination AND e.khash = c.khash
                        ORDER BY e.seq
                        LIMIT greatest(4, 2 * v_rows / cardinality(v_d)) + 16
                    ) x
                ) r
                WHERE ((c.khash >> 58) & 63)::integer = ANY (v_guards)
                  AND NOT EXISTS (SELECT FROM {blocked} b
                      WHERE b.destination = c.destination AND b.key = c.key)
                  AND r.due AND NOT r.leased
            ), chosen AS MATERIALIZED (
                SELECT tid, rank, ord, size FROM (
                    SELECT tid, rank, ord, size,
                           row_number() OVER w AS nth, sum(size) OVER w AS total
                    FROM runs WINDOW w AS (ORDER BY rank, ord ROWS UNBOUNDED PRECEDING)
                ) s
                WHERE nth <= v_rows AND (total <= v_bytes OR nth = 1 AND p_first AND v_rows = p_rows)
            ), locked AS MATERIALIZED (
                -- A row that a late settle holds ends its run here.
                SELECT e.ctid AS tid, c.rank, c.ord, c.size
                FROM chosen c JOIN {events} e ON e.ctid = c.tid
                WHERE e.available_at <= now()
                  AND (e.lease_until IS NULL OR e.lease_until <= now())
                ORDER BY c.ord, c.rank
                FOR UPDATE OF e SKIP LOCKED
            )
            SELECT array_agg(tid), COALESCE(sum(size), 0) INTO v_tids, v_size
            FROM (SELECT tid, size, rank,
                         row_number() OVER (PARTITION BY ord ORDER BY rank) AS nth
                  FROM locked) s
            WHERE nth = rank;

            IF v_tids IS NOT NULL THEN
                RETURN QUERY
                    UPDATE {events} e
                    SET attempts = e.attempts + 1, lease_token = p_token,
                        lease_until = now() + p_lease
                    WHERE e.ctid = ANY (v_tids)
                    RETURNING e.*;
                v_rows := v_rows - cardinality(v_tids);
                v_bytes := v_bytes - v_size;
            END IF;
        END IF;

        IF v_steps < v_budget AND v_found < v_target THEN
            EXIT WHEN v_wrapped;
            v_wrapped := true;
            v_from_d := '';
            v_from_k := -9223372036854775808;
        END IF;
        v_budget := v_budget - v_steps;
    END LOOP;

    v_note.id := '00000000-0000-0000-0000-000000000000';
    v_note.event_type := '';
    v_note.content_type := '';
    v_note.payload := '';
    v_note.created_at := now();
    v_note.replays := 0;
    v_note.seq := v_from_k;
    v_note.destination := v_from_d;
    v_note.shape := -1;
    v_note.attempts := (v_budget <= 0)::integer;
    RETURN NEXT v_note;
END
$claim_keyed$;
