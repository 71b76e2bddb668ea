-- Open rows alone. All instants are whole microseconds since the Unix epoch.
-- shape: 0 fresh (never delayed), 1 due (delayed, retried, released, replayed), 2 keyed, 3 parked.
-- A row is under a lease while lease_until is set; its token stays when the lease is given back.
-- outcome, reason and settled_at are written by a settle and read by a trigger; a row that is open
-- has none.
CREATE TABLE {~events} (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             BLOB    NOT NULL UNIQUE,
    event_type     TEXT    NOT NULL,
    destination    TEXT    NOT NULL,
    "key"          TEXT,
    payload        BLOB    NOT NULL,
    content_type   TEXT    NOT NULL,
    aggregate_type TEXT,
    aggregate_id   TEXT,
    headers        TEXT,
    dedup_key      TEXT,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER,
    max_attempts   INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    replays        INTEGER NOT NULL DEFAULT 0,
    last_error     TEXT,
    shape          INTEGER NOT NULL,
    available_at   INTEGER,
    lease_token    BLOB,
    lease_until    INTEGER,
    outcome        INTEGER,
    reason         TEXT,
    settled_at     INTEGER
);
CREATE INDEX {~events_fresh} ON {~events} (seq) WHERE shape = 0;
CREATE INDEX {~events_due} ON {~events} (available_at, seq) WHERE shape = 1;
CREATE INDEX {~events_keyed} ON {~events} (destination, "key", seq) WHERE shape = 2;
CREATE INDEX {~events_parked} ON {~events} (destination, seq) WHERE shape = 3;
CREATE INDEX {~events_token} ON {~events} (lease_token) WHERE lease_until IS NOT NULL;
CREATE INDEX {~events_key_lease} ON {~events} (destination, "key", lease_until)
    WHERE lease_until IS NOT NULL AND "key" IS NOT NULL;

-- One row for each destination and key that has open rows; kept by the triggers below.
-- ready_at: when its first row is due and no row of it is under a lease.
-- state: 0 in turn, 1 parked, 2 blocked by a dead letter.
CREATE TABLE {~lanes} (
    destination TEXT    NOT NULL,
    "key"       TEXT    NOT NULL,
    ready_at    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    PRIMARY KEY (destination, "key")
) WITHOUT ROWID;
CREATE INDEX {~lanes_ready} ON {~lanes} (ready_at) WHERE state = 0;
CREATE INDEX {~lanes_parked} ON {~lanes} (destination, ready_at) WHERE state = 1;

CREATE TABLE {~published} (
    seq            INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL,
    event_type     TEXT    NOT NULL,
    destination    TEXT    NOT NULL,
    "key"          TEXT,
    payload        BLOB    NOT NULL,
    content_type   TEXT    NOT NULL,
    aggregate_type TEXT,
    aggregate_id   TEXT,
    headers        TEXT,
    dedup_key      TEXT,
    created_at     INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    replays        INTEGER NOT NULL,
    published_at   INTEGER NOT NULL
);
CREATE INDEX {~published_age} ON {~published} (published_at);

CREATE TABLE {~dead} (
    seq            INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL,
    event_type     TEXT    NOT NULL,
    destination    TEXT    NOT NULL,
    "key"          TEXT,
    payload        BLOB    NOT NULL,
    content_type   TEXT    NOT NULL,
    aggregate_type TEXT,
    aggregate_id   TEXT,
    headers        TEXT,
    dedup_key      TEXT,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER,
    max_attempts   INTEGER,
    attempts       INTEGER NOT NULL,
    replays        INTEGER NOT NULL,
    last_error     TEXT,
    reason         TEXT    NOT NULL,
    dead_at        INTEGER NOT NULL
);
CREATE INDEX {~dead_id} ON {~dead} (id);
CREATE INDEX {~dead_key} ON {~dead} (destination, "key", seq);
CREATE INDEX {~dead_age} ON {~dead} (dead_at);

-- What operators discarded, and why.
CREATE TABLE {~discards} (
    seq            INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL,
    event_type     TEXT    NOT NULL,
    destination    TEXT    NOT NULL,
    "key"          TEXT,
    last_error     TEXT,
    death_reason   TEXT    NOT NULL,
    discard_reason TEXT    NOT NULL,
    discarded_at   INTEGER NOT NULL
);
CREATE INDEX {~discards_age} ON {~discards} (discarded_at);

-- Outlives the event.
CREATE TABLE {~dedup} (
    dedup_key  TEXT    NOT NULL PRIMARY KEY,
    id         BLOB    NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX {~dedup_age} ON {~dedup} (created_at);

-- policy: what a dead event does to its key, 'skip' or 'block'.
CREATE TABLE {~destinations} (
    destination TEXT    NOT NULL PRIMARY KEY,
    held_until  INTEGER,
    disabled    INTEGER NOT NULL DEFAULT 0,
    reason      TEXT,
    policy      TEXT    NOT NULL DEFAULT 'skip'
) WITHOUT ROWID;

CREATE TABLE {~blocked} (
    destination TEXT    NOT NULL,
    "key"       TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    PRIMARY KEY (destination, "key")
) WITHOUT ROWID;

CREATE TRIGGER {~events_inserted} AFTER INSERT ON {~events} WHEN new."key" IS NOT NULL BEGIN
    INSERT INTO {~lanes} (destination, "key", ready_at, state)
    VALUES (new.destination, new."key", coalesce(new.available_at, new.created_at),
            EXISTS (SELECT 1 FROM {~blocked} b
                    WHERE b.destination = new.destination AND b."key" = new."key") * 2)
    ON CONFLICT DO NOTHING;
END;

-- An event and its de-duplication key are stored by one statement. A replay asks for no key.
CREATE TRIGGER {~events_dedup} AFTER INSERT ON {~events}
WHEN new.dedup_key IS NOT NULL AND new.replays = 0 BEGIN
    INSERT INTO {~dedup} (dedup_key, id, created_at)
    VALUES (new.dedup_key, new.id, new.created_at);
END;

-- A replayed row leaves the dead letters, and may head its key.
CREATE TRIGGER {~events_replayed} AFTER INSERT ON {~events} WHEN new.replays > 0 BEGIN
    DELETE FROM {~dead} WHERE seq = new.seq;
    UPDATE {~lanes} SET
        ready_at = max(coalesce((SELECT e.available_at FROM {~events} e
                                 WHERE e.shape = 2 AND e.destination = new.destination
                                   AND e."key" = new."key" ORDER BY e.seq LIMIT 1), 0),
                       coalesce((SELECT max(e.lease_until) FROM {~events} e
                                 WHERE e.destination = new.destination AND e."key" = new."key"
                                   AND e.lease_until IS NOT NULL), 0))
    WHERE destination = new.destination AND "key" = new."key";
END;

CREATE TRIGGER {~events_moved} AFTER UPDATE OF lease_until, available_at ON {~events}
WHEN new."key" IS NOT NULL AND new.outcome IS NULL BEGIN
    UPDATE {~lanes} SET
        ready_at = max(coalesce((SELECT e.available_at FROM {~events} e
                                 WHERE e.shape = 2 AND e.destination = new.destination
                                   AND e."key" = new."key" ORDER BY e.seq LIMIT 1), 0),
                       coalesce((SELECT max(e.lease_until) FROM {~events} e
                                 WHERE e.destination = new.destination AND e."key" = new."key"
                                   AND e.lease_until IS NOT NULL), 0)),
        state = EXISTS (SELECT 1 FROM {~blocked} b
                        WHERE b.destination = new.destination AND b."key" = new."key") * 2
    WHERE destination = new.destination AND "key" = new."key";
END;

-- The next row of the key comes after those that were ready before: a hot key starves no other.
CREATE TRIGGER {~events_deleted} AFTER DELETE ON {~events} WHEN old."key" IS NOT NULL BEGIN
    DELETE FROM {~lanes} WHERE destination = old.destination AND "key" = old."key"
        AND NOT EXISTS (SELECT 1 FROM {~events} e WHERE e.shape = 2
                        AND e.destination = old.destination AND e."key" = old."key");
    UPDATE {~lanes} SET
        ready_at = max(coalesce((SELECT e.available_at FROM {~events} e
                                 WHERE e.shape = 2 AND e.destination = old.destination
                                   AND e."key" = old."key" ORDER BY e.seq LIMIT 1), 0),
                       coalesce((SELECT max(e.lease_until) FROM {~events} e
                                 WHERE e.destination = old.destination AND e."key" = old."key"
                                   AND e.lease_until IS NOT NULL), 0),
                       coalesce(old.settled_at, 0)),
        state = EXISTS (SELECT 1 FROM {~blocked} b
                        WHERE b.destination = old.destination AND b."key" = old."key") * 2
    WHERE destination = old.destination AND "key" = old."key";
END;

-- A terminal row leaves in the statement that settles it. outcome: 0 published, 4 dead,
-- 5 published and not kept.
CREATE TRIGGER {~events_settled} AFTER UPDATE OF outcome ON {~events}
WHEN new.outcome IS NOT NULL BEGIN
    INSERT INTO {~published}
        (seq, id, event_type, destination, "key", payload, content_type, aggregate_type,
         aggregate_id, headers, dedup_key, created_at, attempts, replays, published_at)
    SELECT seq, id, event_type, destination, "key", payload, content_type, aggregate_type,
           aggregate_id, headers, dedup_key, created_at, attempts, replays, settled_at
    FROM {~events} WHERE seq = new.seq AND new.outcome = 0;
    INSERT INTO {~dead}
        (seq, id, event_type, destination, "key", payload, content_type, aggregate_type,
         aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, attempts, replays,
         last_error, reason, dead_at)
    SELECT seq, id, event_type, destination, "key", payload, content_type, aggregate_type,
           aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, attempts,
           replays, last_error, reason, settled_at
    FROM {~events} WHERE seq = new.seq AND new.outcome = 4;
    INSERT INTO {~blocked} (destination, "key", seq, since)
    SELECT new.destination, new."key", new.seq, new.settled_at
    FROM {~destinations} d
    WHERE new.outcome = 4 AND new."key" IS NOT NULL
      AND d.destination = new.destination AND d.policy = 'block'
    ON CONFLICT DO NOTHING;
    DELETE FROM {~events} WHERE seq = new.seq;
END;

CREATE TRIGGER {~blocked_inserted} AFTER INSERT ON {~blocked} BEGIN
    UPDATE {~lanes} SET state = 2 WHERE destination = new.destination AND "key" = new."key";
END;

CREATE TRIGGER {~blocked_deleted} AFTER DELETE ON {~blocked} BEGIN
    UPDATE {~lanes} SET state = 0 WHERE destination = old.destination AND "key" = old."key";
END;

-- The block of a key ends with its last dead letter.
CREATE TRIGGER {~dead_deleted} AFTER DELETE ON {~dead} WHEN old."key" IS NOT NULL BEGIN
    DELETE FROM {~blocked} WHERE destination = old.destination AND "key" = old."key"
        AND NOT EXISTS (SELECT 1 FROM {~dead} d
                        WHERE d.destination = old.destination AND d."key" = old."key");
END;

CREATE TRIGGER {~discards_inserted} AFTER INSERT ON {~discards} BEGIN
    DELETE FROM {~dead} WHERE seq = new.seq;
END;
