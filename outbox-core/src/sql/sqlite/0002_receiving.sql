-- Requests by their idempotency key. answer: none while a run is in flight, under lease_until.
CREATE TABLE {~idempotency} (
    scope       TEXT    NOT NULL,
    "key"       TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    token       BLOB    NOT NULL,
    lease_until INTEGER,
    answer      BLOB,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, "key")
);
CREATE INDEX {~idempotency_age} ON {~idempotency} (expires_at);

-- Messages that were accepted.
CREATE TABLE {~inbox} (
    source      TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    fingerprint BLOB,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (source, id)
) WITHOUT ROWID;
CREATE INDEX {~inbox_age} ON {~inbox} (expires_at);

-- Leased locks. token: none where the lock was given back and cools down until held_until.
CREATE TABLE {~locks} (
    name       TEXT    NOT NULL PRIMARY KEY,
    token      BLOB,
    held_until INTEGER NOT NULL
) WITHOUT ROWID;
