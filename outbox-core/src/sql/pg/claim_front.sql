-- Claims keyed events at the front of stripes, in the order of seq.
--
-- {claim_keyed_v1} tells what lanes and stripes are, and what {runs} knows of them. A claim takes the guard
-- of a stripe and then reads its open rows from the first one on. Where it has read as far as any claim of
-- the stripe has come, or to the end, it has seen every lease of the stripe's lanes. Then a lane's rows are
-- free up to the first that has to wait, unless one of the lane's is under a lease.
--
-- How far claims of this kind came in a stripe, {runs} tells in last_seq of a row that has no destination
-- and as hash 16 plus the stripe's number; how many there were, in first_seq. (How far those of the other
-- kind came, first_seq of the stripe's own row tells.)
--
-- Stripes are claimed one by one until at least half of the rows are found, or all together by one
-- statement, which reads less of each, for where they have little. A careful claim looks before it takes a
-- guard.
--
-- Where too little is free among all rows that were read of one, it is jammed: rows of a few lanes that have
-- to wait fill its front. What is behind them is for {claim_keyed_v1}.
--
-- One row more than the claimed ones is returned: shape -1, in seq the stripes that it looked at (stripe
-- -8 is bit 0), those of which it did not see the end (from bit 16 on), those that are jammed (from bit 32
-- on), those with claimed rows (from bit 48 on); in attempts 2 where others guarded a stripe.
CREATE FUNCTION {claim_front_v1}(
    p_token uuid, p_lease interval, p_rows integer, p_bytes bigint, p_first boolean,
    p_types text[], p_only text[], p_except text[],
    p_stripes bigint[], p_together boolean, p_careful boolean)
RETURNS SETOF {events}
LANGUAGE plpgsql VOLATILE
:settings
AS $claim_front$
#variable_conflict use_column
DECLARE
    v_class CONSTANT integer := '{events}'::regclass::oid::bigint::bit(32)::integer;
    -- Rows of one lane that a claim takes while there are others.
    v_share CONSTANT integer := greatest(4, p_rows / 3);
    v_out text[];
    -- The stripes to come, and those that are claimed now.
    v_left bigint[] := p_stripes;
    v_now bigint[];
    v_empty bigint[];
    v_stripe bigint;
    v_guarded boolean := NOT p_careful;
    v_refused boolean := false;
    -- Rows of each stripe to read.
    v_width integer;
    v_widest boolean;
    -- What is left to claim.
    v_rows integer := p_rows;
    v_bytes bigint := p_bytes;
    -- Rows to look at.
    v_budget integer := greatest(6000, 8 * p_rows);
    v_plain boolean;
    v_tids tid[] := '{}';
    v_run tid[];
    v_seqs bigint[];
    v_stripes bigint[];
    v_size bigint;
    v_count bigint;
    v_free bigint;
    -- Rows whose lease has ended or that others may have locked; those of them that are locked now.
    v_stale bigint[];
    v_locked bigint[];
    v_tried boolean;
    -- Sets of stripes.
    v_full bigint;
    v_fruitful bigint;
    v_some bigint;
    v_poor bigint;
    v_looked bigint := 0;
    v_deep bigint := 0;
    v_jammed bigint := 0;
    v_gave bigint := 0;
    v_note {events};
BEGIN
    :begin

    WHILE 2 * v_rows > p_rows AND v_bytes > 0 AND v_budget > 0 AND cardinality(v_left) > 0 LOOP
        v_now := v_left;
        IF v_guarded THEN
            v_now := '{}';
            WHILE cardinality(v_left) > 0 AND (p_together OR v_now = '{}') LOOP
                v_stripe := v_left[1];
                v_left := v_left[2:];
                IF pg_try_advisory_xact_lock(v_class, v_stripe::integer) THEN
                    v_now := v_now || v_stripe;
                ELSE
                    v_refused := true;
                END IF;
            END LOOP;
            EXIT WHEN v_now = '{}';
        END IF;

        v_count := NULL;
        v_locked := '{}';
        v_tried := false;
        v_poor := 0;
        IF v_guarded AND NOT p_together THEN
            -- Mostly all of the first rows are free.
            SELECT array_agg(tid), array_agg(seq), sum(size), count(*), bool_and(free)
            INTO v_run, v_seqs, v_size, v_count, v_plain
            FROM (
                SELECT e.ctid AS tid, e.seq, octet_length(e.payload) AS size,
                    e.lease_until IS NULL AND e.lease_token IS NULL
                    AND (e.xmax = '0' OR e.xmax = e.xmin)
                    AND e.available_at <= now()
                    AND e.destination <> ALL (v_out)
                    AND (p_only IS NULL OR e.destination = ANY (p_only))
                    AND (p_types IS NULL OR e.event_type = ANY (p_types))
                    AND (SELECT true FROM {blocked} LIMIT 1) IS NULL AS free
                FROM {events} e
                WHERE e.key IS NOT NULL AND (e.khash >> 60)::smallint = v_stripe
                ORDER BY (e.khash >> 60)::smallint, e.seq
                LIMIT v_rows
            ) r;
            v_free := v_count;
            v_seqs := v_seqs[v_count:];
            v_stripes := CASE WHEN v_count > 0 THEN v_now END;
            v_some := (v_count > 0)::integer::bigint << (v_stripe + 8)::integer;
            v_full := (v_count = v_rows)::integer::bigint << (v_stripe + 8)::integer;
            IF NOT v_plain OR v_size > v_bytes OR v_full > 0 AND v_seqs[1] < (
                SELECT m.mark FROM unnest(v_now) AS u(stripe) CROSS JOIN LATERAL (
                    :mark
                ) m) THEN
                v_count := NULL;
            END IF;
        END IF;

        v_width := greatest(CASE WHEN p_together THEN 10 ELSE 50 END, 2 * v_rows / cardinality(v_now));
        v_widest := p_together;
        WHILE v_count IS NULL LOOP
            SELECT array_agg(tid) FILTER (WHERE taken), array_agg(seq) FILTER (WHERE taken),
                array_agg(stripe) FILTER (WHERE taken), sum(size) FILTER (WHERE taken),
                count(*) FILTER (WHERE taken), count(*) FILTER (WHERE free),
                COALESCE(bit_or(bit) FILTER (WHERE n = v_width), 0),
                COALESCE(bit_or(bit) FILTER (WHERE free), 0), COALESCE(bit_or(bit), 0),
                array_agg(seq) FILTER (WHERE state = 2)
            INTO v_run, v_seqs, v_stripes, v_size, v_count, v_free, v_full, v_fruitful, v_some, v_stale
            FROM (
                SELECT *, 1::bigint << (stripe + 8)::integer AS bit,
                    free AND row_number() OVER w <= v_rows
                    AND (sum(size) OVER w <= v_bytes
                        OR row_number() OVER w = 1 AND p_first AND v_rows = p_rows) AS taken
                FROM (
                    SELECT tid, seq, stripe, size, state, n, nth > v_share AS late,
                        worst < 2 AND NOT waits
                        AND (n < v_width OR last >= mark OR mark IS NULL) AS free
                    FROM (
                        SELECT *, count(*) OVER p AS n, max(seq) OVER p AS last,
                            max(state) OVER l AS worst, row_number() OVER l AS nth,
                            bool_or(state = 1) OVER (
                                PARTITION BY stripe, khash ORDER BY seq ROWS UNBOUNDED PRECEDING) AS waits
                        FROM (
                            SELECT u.stripe, m.mark, e.*
                            FROM unnest(v_now) AS u(stripe)
                            CROSS JOIN LATERAL (
                                :mark
                            ) m
                            CROSS JOIN LATERAL (
                                SELECT e.ctid AS tid, e.seq, e.khash, octet_length(e.payload) AS size,
                                    CASE
                                        WHEN e.lease_until > now() OR e.destination = ANY (v_out)
                                            OR p_only IS NOT NULL AND e.destination <> ALL (p_only)
                                            THEN 3
                                        WHEN (SELECT true FROM {blocked} LIMIT 1) IS NOT NULL AND EXISTS (
                                            SELECT FROM {blocked} b
                                            WHERE b.destination = e.destination AND b.key = e.key)
                                            THEN 3
                                        WHEN v_guarded AND (e.lease_token IS NOT NULL
                                                OR e.xmax <> '0' AND e.xmax <> e.xmin)
                                            AND e.seq <> ALL (v_locked)
                                            THEN 2 - (v_tried AND e.lease_token IS NULL)::integer
                                        WHEN e.available_at > now()
                                            OR p_types IS NOT NULL AND e.event_type <> ALL (p_types)
                                            THEN 1
                                        ELSE 0
                                    END AS state
                                FROM {events} e
                                WHERE e.key IS NOT NULL AND (e.khash >> 60)::smallint = u.stripe
                                ORDER BY (e.khash >> 60)::smallint, e.seq
                                LIMIT v_width
                            ) e
                        ) r
                        WINDOW p AS (PARTITION BY stripe), l AS (PARTITION BY stripe, khash ORDER BY seq
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
                    ) l
                ) f
                WINDOW w AS (ORDER BY NOT free, late, seq ROWS UNBOUNDED PRECEDING)
            ) t;
            v_budget := v_budget - v_width * cardinality(v_now);
            -- Those of which too little is free.
            v_poor := CASE WHEN NOT v_guarded THEN v_full & ~v_fruitful
                WHEN 2 * v_free < v_rows THEN v_full ELSE 0 END;
            IF v_stale IS NOT NULL AND NOT v_tried THEN
                -- An extension that began in time may still be under way: where it holds a row, or has
                -- extended it, the lane has to wait. One that locks it later finds that the lease has
                -- ended. Where others hold a row that has no lease, the lane ends before it.
                SELECT v_locked || COALESCE(array_agg(seq), '{}') INTO v_locked
                FROM (
                    SELECT e.seq FROM {events} e
                    WHERE e.seq = ANY (v_stale) AND COALESCE(e.lease_until, '-infinity') <= now()
                      AND NOT e.seq = ANY (v_locked)
                    ORDER BY e.seq
                    FOR UPDATE SKIP LOCKED
                ) s;
                v_tried := true;
                v_count := NULL;
            ELSIF v_poor > 0 AND NOT v_widest THEN
                v_width := greatest(v_width, least(4 * v_width, 20000));
                v_widest := true;
                v_tried := false;
                v_count := NULL;
            END IF;
        END LOOP;

        v_looked := v_looked | (
            SELECT bit_or(1::bigint << (u.stripe + 8)::integer) FROM unnest(v_now) AS u(stripe));
        v_deep := v_deep | v_full;
        IF NOT p_together THEN
            v_jammed := v_jammed | v_poor;
        END IF;
        IF NOT v_guarded THEN
            -- What there is to be had is looked at again, under guards.
            EXIT WHEN v_fruitful = 0;
            v_left := ARRAY(
                SELECT u.stripe FROM unnest(p_stripes) AS u(stripe)
                WHERE (v_fruitful >> (u.stripe + 8)::integer) & 1 > 0);
            v_guarded := true;
            CONTINUE;
        END IF;
        v_empty := ARRAY(
            SELECT u.stripe FROM unnest(v_now) AS u(stripe)
            WHERE (v_some >> (u.stripe + 8)::integer) & 1 = 0);
        IF cardinality(v_empty) > 0 THEN
            -- No lane, no lease.
            DELETE FROM {runs} WHERE destination <> '' AND khash >> 60 = ANY (v_empty);
        END IF;
        -- Nothing more where the next one has no room.
        v_bytes := CASE WHEN v_count < least(v_rows, v_free) THEN 0 ELSE v_bytes - COALESCE(v_size, 0) END;
        IF v_count > 0 THEN
            v_tids := v_tids || v_run;
            v_rows := v_rows - v_count;
            v_gave := v_gave | (
                SELECT bit_or(1::bigint << (u.stripe + 8)::integer) FROM unnest(v_stripes) AS u(stripe));
            INSERT INTO {runs} AS r (destination, khash, first_seq, last_seq)
            SELECT '', 16 + u.stripe, 1, max(u.seq) FROM unnest(v_stripes, v_seqs) AS u(stripe, seq) GROUP BY u.stripe
            ON CONFLICT (destination, khash) DO UPDATE
            SET first_seq = r.first_seq + 1, last_seq = greatest(r.last_seq, EXCLUDED.last_seq);
        END IF;
    END LOOP;

    IF cardinality(v_tids) > 0 THEN
        :take
    END IF;

    v_note.seq := v_looked | (v_deep << 16) | (v_jammed << 32) | (v_gave << 48);
    v_note.attempts := v_refused::integer * 2;
    :note
END
$claim_front$;
