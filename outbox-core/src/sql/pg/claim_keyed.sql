-- Claims runs of keys of the stripes p_lo to p_hi, from the key after (p_destination, p_khash) on and round
-- once.
--
-- A lane is what has one destination and one hash of the key. Lanes lie in 16 stripes, by the top
-- bits of the hash, and the index has them by stripe, destination and hash. A pass takes the guards
-- of a few stripes (advisory locks, kept until commit; nobody waits for one), and only then reads:
-- each statement of a VOLATILE function has a snapshot of its own under READ COMMITTED.
--
-- A run begins only where no row of the lane is under a lease. Of a lane that was seen to its end,
-- this is plain. Of a longer one, {runs} tells where its leases can be. Where it has no row for the
-- lane, these are from claims that saw the lane to its end, and {runs} tells for each stripe up to which
-- seq such claims came (there, the destination is empty and the hash is the stripe's number; first_seq is
-- how far all claims of the stripe came). {claim_front_v1} writes no such rows, but counts its claims:
-- where there was one since a lane's row was written, leases can also be wherever claims of that kind came.
--
-- A careful claim looks before it takes a guard, so that a relay for which there is nothing disturbs no
-- other. It is for relays whose last claim found nothing: what it finds, it reads twice.
--
-- A row with an xmax may be locked by another session (by several, xmax is no transaction's number), so
-- that it is locked without waiting, or left. One that was locked and then written by one transaction
-- has that in both xmin and xmax, and is free.
--
-- One row more than the claimed ones is returned: shape -1, with the key that the next call starts
-- after, and in attempts 1 where the next call should follow at once, plus 2 where others guarded a stripe.
CREATE FUNCTION {claim_keyed_v1}(
    p_token uuid, p_lease interval, p_rows integer, p_bytes bigint, p_first boolean,
    p_destination text, p_khash bigint,
    p_types text[], p_only text[], p_except text[], p_careful boolean, p_lo bigint, p_hi bigint)
RETURNS SETOF {events}
LANGUAGE plpgsql VOLATILE
:settings
AS $claim_keyed$
#variable_conflict use_column
DECLARE
    v_class CONSTANT integer := '{events}'::regclass::oid::bigint::bit(32)::integer;
    -- Rows of one lane that a claim takes while there are others, and rows that are read at once.
    v_share CONSTANT integer := greatest(4, p_rows / 4);
    v_chunk integer := 2 * v_share;
    v_out text[];
    -- The place behind which the walk goes on.
    v_d text := p_destination;
    v_k bigint := p_khash;
    v_before integer;
    v_before_d text;
    v_before_k bigint;
    -- Whether the walk has come to the last stripe; whether the claim ends.
    v_round boolean := false;
    v_ends boolean;
    -- Whether this is the last round, and where that ends.
    v_wrapped boolean := p_khash = p_lo << 60 AND p_destination = '';
    v_end bigint := CASE WHEN v_wrapped THEN p_hi ELSE p_khash >> 60 END;
    -- The guarded stripes, and how many the next pass guards.
    v_lo bigint;
    v_hi bigint;
    v_stripes integer := 1;
    v_guarded boolean;
    -- What is left: rows and bytes to claim, rows to look at, and to look through for a lease.
    v_rows integer := p_rows;
    v_bytes bigint := p_bytes;
    v_budget integer := greatest(6000, 8 * p_rows);
    v_search integer := 100000;
    v_unfinished boolean := false;
    v_refused boolean := false;
    v_seen integer;
    v_long boolean;
    v_closed boolean;
    v_n integer;
    v_end_seen boolean;
    v_whole boolean;
    v_full boolean;
    v_done boolean;
    v_more integer;
    v_count bigint;
    v_lease bigint;
    v_stale bigint;
    v_ended bigint[];
    v_busy boolean;
    v_last bigint;
    v_from bigint;
    v_to bigint;
    v_size bigint;
    v_over bigint;
    -- The stripe whose marks are known, and its own: up to where rows of lanes without a record were claimed;
    -- up to where this pass claims such rows.
    v_marked bigint;
    v_mark bigint;
    v_top bigint;
    -- How far this claim came in each stripe, with rows of lanes without a record, and with all.
    v_tops bigint[] := array_fill(NULL::bigint, ARRAY[16]);
    v_fars bigint[];
    v_at integer;
    -- How many claims of the stripe there were at its front, and how far these came; whether a lane's
    -- record is younger.
    v_fronts bigint;
    v_front bigint;
    v_trusted boolean;
    v_due boolean;
    v_seqs bigint[];
    v_run tid[];
    v_tids tid[] := '{}';
    -- Lanes that were not seen to their end and have a run now; lanes that were, and have a record.
    v_long_d text[] := '{}';
    v_long_k bigint[] := '{}';
    v_long_first bigint[] := '{}';
    v_long_last bigint[] := '{}';
    v_long_more boolean[] := '{}';
    v_long_fronts bigint[] := '{}';
    v_short_d text[] := '{}';
    v_short_k bigint[] := '{}';
    v_lane record;
    v_note {events};
BEGIN
    :begin

    LOOP
        v_ends := v_rows <= 0 OR v_bytes <= 0 OR v_budget <= 0;
        -- The next stripe that has rows (or the only one); at first the one within which the last call stopped.
        IF v_ends OR v_round THEN
            v_lo := NULL;
        ELSIF v_lo IS NULL AND v_d <> '' THEN
            v_lo := v_k >> 60;
        ELSIF p_lo = p_hi THEN
            v_lo := p_lo;
        ELSE
            SELECT e.khash >> 60 INTO v_lo
            FROM {events} e
            WHERE e.key IS NOT NULL
              AND (e.khash >> 60, e.destination, e.khash) > (v_k >> 60, v_d, v_k)
              AND e.khash >> 60 <= p_hi
            ORDER BY e.khash >> 60, e.destination, e.khash, e.seq
            LIMIT 1;
        END IF;
        v_ends := v_ends OR v_wrapped AND (v_lo IS NULL OR v_lo > v_end);
        IF v_ends OR v_lo IS NULL THEN
            -- Few lanes: longer runs of the long ones. Nothing behind what was seen is under a lease.
            IF v_ends AND v_rows > 0 AND v_bytes > 0 THEN
                FOR i IN 1 .. cardinality(v_long_d) LOOP
                    CONTINUE WHEN NOT v_long_more[i];
                    v_more := (v_rows - 1) / (cardinality(v_long_d) - i + 1) + 1;
                    SELECT array_agg(tid), array_agg(seq), sum(size), (array_agg(size))[v_more + 1],
                        count(*), bool_and(due)
                    INTO v_run, v_seqs, v_size, v_over, v_count, v_due
                    FROM (
                        SELECT e.ctid AS tid, e.seq, octet_length(e.payload) AS size,
                            e.available_at <= now() AND e.lease_token IS NULL
                            AND (e.xmax = '0' OR e.xmax = e.xmin)
                            AND (p_types IS NULL OR e.event_type = ANY (p_types)) AS due
                        FROM {events} e
                        WHERE e.key IS NOT NULL AND e.khash >> 60 = v_long_k[i] >> 60
                          AND e.destination = v_long_d[i] AND e.khash = v_long_k[i]
                          AND e.seq > v_long_last[i]
                        ORDER BY e.khash >> 60, e.destination, e.khash, e.seq
                        LIMIT v_more + 1
                    ) x;
                    v_run := v_run[1:v_more];
                    v_size := v_size - COALESCE(v_over, 0);
                    v_last := v_seqs[least(v_count, v_more)];
                    IF NOT v_due OR v_size > v_bytes THEN
                        -- Up to the first that can't be taken.
                        SELECT array_agg(tid ORDER BY seq), sum(size), max(seq)
                        INTO v_run, v_size, v_last
                        FROM (
                            SELECT e.ctid AS tid, e.seq, octet_length(e.payload) AS size,
                                sum(octet_length(e.payload)) OVER w AS total,
                                bool_and(e.available_at <= now() AND e.lease_token IS NULL
                                    AND (e.xmax = '0' OR e.xmax = e.xmin)
                                    AND (p_types IS NULL OR e.event_type = ANY (p_types))) OVER w AS due
                            FROM unnest(v_run) AS u(tid)
                            JOIN {events} e ON e.ctid = u.tid
                            WINDOW w AS (ORDER BY e.seq ROWS UNBOUNDED PRECEDING)
                        ) s
                        WHERE due AND total <= v_bytes;
                    END IF;
                    IF v_run IS NOT NULL THEN
                        v_tids := v_tids || v_run;
                        v_rows := v_rows - cardinality(v_run);
                        v_bytes := v_bytes - v_size;
                        v_long_last[i] := v_last;
                    END IF;
                    IF v_count <= v_more THEN
                        v_at := (v_long_k[i] >> 60) + 9;
                        v_tops[v_at] := greatest(v_tops[v_at], v_long_last[i], v_seqs[v_count]);
                        v_short_d := v_short_d || v_long_d[i];
                        v_short_k := v_short_k || v_long_k[i];
                    END IF;
                    EXIT WHEN v_rows <= 0 OR v_bytes <= 0;
                END LOOP;
            END IF;
            -- At the end, and before the walk goes round: what it took must be seen to be taken.
            IF cardinality(v_tids) > 0 THEN
                :take
                IF cardinality(v_long_d) > 0 THEN
                    INSERT INTO {runs} (destination, khash, first_seq, last_seq, fronts)
                    SELECT * FROM unnest(v_long_d, v_long_k, v_long_first, v_long_last, v_long_fronts)
                    ON CONFLICT (destination, khash) DO UPDATE
                    SET first_seq = EXCLUDED.first_seq, last_seq = EXCLUDED.last_seq,
                        fronts = EXCLUDED.fronts;
                END IF;
                IF cardinality(v_short_d) > 0 THEN
                    DELETE FROM {runs} m
                    USING unnest(v_short_d, v_short_k) AS s(destination, khash)
                    WHERE m.destination = s.destination AND m.khash = s.khash;
                END IF;
                v_fars := v_tops;
                FOR i IN 1 .. cardinality(v_long_k) LOOP
                    v_at := (v_long_k[i] >> 60) + 9;
                    v_fars[v_at] := greatest(v_fars[v_at], v_long_last[i]);
                END LOOP;
                -- A little more, so that it has not to be written each time.
                INSERT INTO {runs} AS m (destination, khash, first_seq, last_seq)
                SELECT '', u.at - 9, least(u.far, 9223372036854775607) + 200,
                    CASE WHEN u.top IS NULL THEN -9223372036854775808
                        ELSE least(u.top, 9223372036854775607) + 200 END
                FROM unnest(v_tops, v_fars) WITH ORDINALITY AS u(top, far, at)
                LEFT JOIN {runs} r ON r.destination = '' AND r.khash = u.at - 9
                WHERE u.far IS NOT NULL
                  AND (r.khash IS NULL OR r.first_seq < u.far OR r.last_seq < u.top)
                ON CONFLICT (destination, khash) DO UPDATE
                SET first_seq = greatest(m.first_seq, EXCLUDED.first_seq),
                    last_seq = greatest(m.last_seq, EXCLUDED.last_seq);
            END IF;
            v_marked := NULL;
            EXIT WHEN v_ends;
            v_tids := '{}';
            v_short_d := '{}';
            v_short_k := '{}';
            v_wrapped := true;
            v_round := false;
            v_d := '';
            v_k := p_lo << 60;
            CONTINUE;
        END IF;
        IF v_lo > v_k >> 60 THEN
            v_d := '';
            v_k := v_lo << 60;
        END IF;
        v_guarded := NOT p_careful;
        v_hi := CASE WHEN v_guarded THEN v_lo - 1 ELSE least(v_lo + v_stripes - 1, p_hi) END;
        WHILE v_guarded AND v_hi < p_hi AND v_hi < v_lo + v_stripes - 1
              AND pg_try_advisory_xact_lock(v_class, (v_hi + 1)::integer) LOOP
            v_hi := v_hi + 1;
        END LOOP;
        v_refused := v_refused OR v_guarded AND v_hi < v_lo;
        v_stripes := least(v_stripes * 4, 16);

        v_top := NULL;

        v_full := v_hi >= v_lo;
        WHILE v_full AND v_rows > 0 AND v_bytes > 0 AND v_budget > 0 LOOP
            v_seen := 0;
            v_long := false;
            v_closed := false;
            v_full := false;
            v_before := v_rows;
            FOR v_lane IN
                SELECT x.*, m.first_seq, m.last_seq, m.fronts,
                    x.state = 0 AND x.n <= v_share AND m.last_seq IS NULL AS plain
                FROM (
                    SELECT stripe, destination, khash, count(*)::integer AS n, array_agg(tid) AS tids, array_agg(seq) AS seqs,
                        array_agg(size) AS sizes, sum(size) AS size, max(state) AS state, min(seq) FILTER (WHERE state = 1) AS cut
                    FROM (
                        SELECT e.khash >> 60 AS stripe, e.destination, e.khash, e.seq, e.ctid AS tid,
                            octet_length(e.payload) AS size,
                            CASE
                                WHEN e.lease_until > now() THEN 3
                                WHEN (SELECT true FROM {blocked} LIMIT 1) IS NOT NULL AND EXISTS (
                                    SELECT FROM {blocked} b
                                    WHERE b.destination = e.destination AND b.key = e.key) THEN 3
                                WHEN e.lease_token IS NOT NULL
                                    OR e.xmax <> '0' AND e.xmax <> e.xmin THEN 2
                                WHEN e.available_at > now()
                                    OR p_types IS NOT NULL AND e.event_type <> ALL (p_types) THEN 1
                                ELSE 0
                            END AS state
                        FROM {events} e
                        WHERE e.key IS NOT NULL
                          AND (e.khash >> 60, e.destination, e.khash) > (v_k >> 60, v_d, v_k)
                          AND e.khash >> 60 <= v_hi
                        ORDER BY e.khash >> 60, e.destination, e.khash, e.seq
                        LIMIT v_chunk
                    ) r
                    GROUP BY stripe, destination, khash
                ) x
                LEFT JOIN LATERAL (
                    SELECT first_seq, last_seq, fronts FROM {runs} r
                    WHERE r.destination = x.destination AND r.khash = x.khash LIMIT 1) m ON true
                ORDER BY x.stripe, x.destination, x.khash
            LOOP
                v_seen := v_seen + v_lane.n;
                IF v_lane.plain AND v_guarded AND v_seen < v_chunk AND v_lane.n < v_rows
                   AND v_lane.size < v_bytes AND NOT v_lane.destination = ANY (v_out)
                   AND (p_only IS NULL OR v_lane.destination = ANY (p_only)) THEN
                    v_tids := v_tids || v_lane.tids;
                    v_top := greatest(v_top, v_lane.seqs[v_lane.n]);
                    v_rows := v_rows - v_lane.n;
                    v_bytes := v_bytes - v_lane.size;
                    v_d := v_lane.destination;
                    v_k := v_lane.khash;
                    CONTINUE;
                END IF;
                v_closed := v_lane.destination = ANY (v_out)
                    OR COALESCE(NOT v_lane.destination = ANY (p_only), false);
                IF v_closed THEN
                    -- Past the destination's lanes of this stripe.
                    v_d := v_lane.destination;
                    v_k := v_lane.khash | 1152921504606846975;
                    v_full := true;
                    EXIT;
                END IF;
                v_n := v_lane.n;
                v_end_seen := v_seen < v_chunk;
                v_long := v_n = v_chunk;
                v_whole := v_end_seen AND v_n <= v_share;
                IF NOT v_end_seen THEN
                    v_full := true;
                    -- Cut by the chunk: the next one begins with it.
                    EXIT WHEN v_n <= v_share;
                END IF;
                v_before_d := v_d;
                v_before_k := v_k;
                v_d := v_lane.destination;
                v_k := v_lane.khash;
                CONTINUE WHEN v_lane.state = 3 OR v_lane.cut = v_lane.seqs[1];
                IF NOT v_guarded THEN
                    -- There is something to be had: again from here, under the guard.
                    v_guarded := true;
                    v_lo := v_k >> 60;
                    v_hi := v_lo;
                    v_full := pg_try_advisory_xact_lock(v_class, v_lo::integer);
                    v_refused := v_refused OR NOT v_full;
                    v_d := v_before_d;
                    v_k := v_before_k;
                    IF v_k >> 60 < v_lo THEN
                        v_d := '';
                        v_k := v_lo << 60;
                    END IF;
                    EXIT;
                END IF;

                v_stale := CASE WHEN v_lane.state > 0 THEN v_lane.seqs[v_n] END;
                v_ended := NULL;
                v_busy := false;
                IF v_lane.state = 2 THEN
                    SELECT array_agg(e.seq) INTO v_ended
                    FROM {events} e
                    WHERE e.seq = ANY (v_lane.seqs) AND e.lease_token IS NOT NULL;
                END IF;
                IF NOT v_whole AND v_marked IS DISTINCT FROM v_k >> 60 THEN
                    v_marked := v_k >> 60;
                    SELECT max(last_seq) FILTER (WHERE khash = v_marked),
                        max(last_seq) FILTER (WHERE khash > 7),
                        COALESCE(max(first_seq) FILTER (WHERE khash > 7), 0)
                    INTO v_mark, v_front, v_fronts
                    FROM {runs}
                    WHERE destination = '' AND khash IN (v_marked, 16 + v_marked);
                END IF;
                v_trusted := v_lane.fronts = v_fronts;
                v_to := CASE WHEN v_trusted THEN v_lane.last_seq
                    ELSE greatest(COALESCE(v_lane.last_seq, v_mark), v_front) END;
                IF NOT v_end_seen AND v_lane.seqs[v_n] < v_to THEN
                    v_from := greatest(v_lane.seqs[v_n] + 1,
                        CASE WHEN v_trusted THEN v_lane.first_seq END);
                    v_lease := NULL;
                    v_count := 0;
                    IF v_trusted THEN
                        SELECT e.seq INTO v_lease
                        FROM {events} e
                        WHERE e.key IS NOT NULL AND e.khash >> 60 = v_k >> 60
                          AND e.destination = v_d AND e.khash = v_k
                          AND e.seq = v_lane.first_seq AND e.lease_until > now();
                    END IF;
                    IF v_lease IS NULL THEN
                        SELECT count(*), COALESCE(max(seq), v_from - 1), min(seq) FILTER (WHERE leased),
                            COALESCE(max(seq) FILTER (WHERE stale), v_stale),
                            v_ended || array_agg(seq) FILTER (WHERE stale AND NOT leased)
                        INTO v_count, v_last, v_lease, v_stale, v_ended
                        FROM (
                            SELECT e.seq, e.lease_until > now() AS leased,
                                e.lease_token IS NOT NULL AS stale
                            FROM {events} e
                            WHERE e.key IS NOT NULL AND e.khash >> 60 = v_k >> 60
                              AND e.destination = v_d AND e.khash = v_k
                              AND e.seq BETWEEN v_from AND v_to
                            ORDER BY e.khash >> 60, e.destination, e.khash, e.seq
                            LIMIT v_search
                        ) s;
                    END IF;
                    v_busy := v_lease IS NOT NULL OR v_count = v_search;
                    v_search := v_search - v_count;
                END IF;
                IF v_ended IS NOT NULL THEN
                    -- An extension that began in time may still be under way. Where it holds a row, or
                    -- has extended it, this lane has to wait. One that locks it later finds that the
                    -- lease has ended.
                    SELECT count(*) INTO v_count
                    FROM (
                        SELECT FROM {events} e
                        WHERE e.seq = ANY (v_ended)
                          AND e.lease_token IS NOT NULL AND e.lease_until <= now()
                        ORDER BY e.seq
                        FOR UPDATE SKIP LOCKED
                    ) l;
                    CONTINUE WHEN v_count < cardinality(v_ended);
                END IF;
                IF v_busy THEN
                    -- The next claim goes on from here.
                    v_unfinished := v_unfinished OR v_lease IS NULL;
                    v_from := COALESCE(v_lease, v_last + 1);
                    IF v_lane.first_seq IS DISTINCT FROM v_from OR NOT v_trusted THEN
                        INSERT INTO {runs} (destination, khash, first_seq, last_seq, fronts)
                        VALUES (v_d, v_k, v_from, v_to, v_fronts)
                        ON CONFLICT (destination, khash) DO UPDATE
                        SET first_seq = EXCLUDED.first_seq, last_seq = EXCLUDED.last_seq,
                            fronts = EXCLUDED.fronts;
                    END IF;
                    CONTINUE;
                END IF;

                v_count := least(v_n, v_share, v_rows);
                v_run := v_lane.tids[1:v_count];
                v_size := v_lane.size;
                IF v_count = v_n - 1 THEN
                    v_size := v_size - v_lane.sizes[v_n];
                ELSIF v_count < v_n THEN
                    v_size := 0;
                    FOR i IN 1 .. v_count LOOP
                        v_size := v_size + v_lane.sizes[i];
                    END LOOP;
                END IF;
                v_last := v_lane.seqs[v_count];
                IF v_lane.state > 0 OR v_size > v_bytes THEN
                    -- The rows that can be taken, up to the first that can't. A row that a late settle or
                    -- extension holds (its xmax tells) can't: nobody is waited for.
                    SELECT array_agg(tid ORDER BY ord) FILTER (WHERE fits), sum(size) FILTER (WHERE fits),
                        max(seq) FILTER (WHERE fits), count(*)
                    INTO v_run, v_size, v_last, v_count
                    FROM (
                        SELECT tid, seq, size, ord, row_number() OVER w AS nth,
                            sum(size) OVER w <= v_bytes
                            OR ord = 1 AND p_first AND v_rows = p_rows AS fits
                        FROM (
                            SELECT e.ctid AS tid, e.seq, octet_length(e.payload) AS size, u.ord
                            FROM unnest(v_run) WITH ORDINALITY AS u(tid, ord)
                            JOIN {events} e ON e.ctid = u.tid
                            WHERE e.available_at <= now()
                              AND (p_types IS NULL OR e.event_type = ANY (p_types))
                              AND (e.lease_until IS NULL OR e.lease_until <= now())
                            ORDER BY u.ord
                            FOR UPDATE OF e SKIP LOCKED
                        ) l
                        WINDOW w AS (ORDER BY ord ROWS UNBOUNDED PRECEDING)
                    ) s
                    WHERE nth = ord;
                    IF v_run IS NULL THEN
                        CONTINUE WHEN v_count = 0;
                        -- No room for its head: the next claim begins with it.
                        v_bytes := 0;
                        v_d := v_before_d;
                        v_k := v_before_k;
                        EXIT;
                    END IF;
                END IF;
                v_tids := v_tids || v_run;
                v_rows := v_rows - cardinality(v_run);
                v_bytes := v_bytes - v_size;
                IF NOT v_whole THEN
                    v_long_d := v_long_d || v_d;
                    v_long_k := v_long_k || v_k;
                    v_long_first := v_long_first || v_lane.seqs[1];
                    v_long_last := v_long_last || greatest(v_last, v_stale);
                    v_long_more := v_long_more || (v_stale IS NULL);
                    v_long_fronts := v_long_fronts || v_fronts;
                ELSE
                    v_top := greatest(v_top, v_lane.seqs[v_n]);
                    IF v_lane.last_seq IS NOT NULL THEN
                        v_short_d := v_short_d || v_d;
                        v_short_k := v_short_k || v_k;
                    END IF;
                END IF;
                EXIT WHEN v_rows <= 0 OR v_bytes <= 0;
            END LOOP;
            v_budget := v_budget - v_seen - 20;
            -- Little at once where little is to be had.
            v_chunk := CASE
                WHEN v_closed THEN 1
                WHEN v_long OR v_rows = v_before THEN v_share + 1
                ELSE v_share + 1 + v_rows
            END;
        END LOOP;

        v_done := NOT v_full AND v_rows > 0 AND v_bytes > 0;

        -- Rows of lanes without a record came this far.
        FOR i IN v_lo + 9 .. v_hi + 9 LOOP
            v_tops[i] := greatest(v_tops[i], v_top);
        END LOOP;

        IF v_done THEN
            v_hi := greatest(v_hi, v_lo);
            v_d := '';
            IF v_hi < p_hi THEN
                v_k := (v_hi + 1) << 60;
            ELSE
                v_k := p_lo << 60;
                v_round := true;
            END IF;
        END IF;
    END LOOP;

    v_note.seq := v_k;
    v_note.destination := v_d;
    v_note.attempts := (v_unfinished OR v_budget <= 0)::integer + v_refused::integer * 2;
    :note
END
$claim_keyed$;
