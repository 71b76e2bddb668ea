-- Requests by their idempotency key. answer: none while a run is in flight, under lease_until.
CREATE TABLE {idempotency} (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    token uuid NOT NULL,
    lease_until timestamptz,
    answer bytea,
    expires_at timestamptz NOT NULL,
    CONSTRAINT {~idempotency_pk} PRIMARY KEY (scope, key)
);
CREATE INDEX {~idempotency_age} ON {idempotency} (expires_at);

-- Messages that were accepted.
CREATE TABLE {inbox} (
    source text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    fingerprint bytea,
    expires_at timestamptz NOT NULL,
    CONSTRAINT {~inbox_pk} PRIMARY KEY (source, id)
);
CREATE INDEX {~inbox_age} ON {inbox} (expires_at);

-- Leased locks. token: none where the lock was given back and cools down until held_until.
CREATE TABLE {locks} (
    name text COLLATE "C" NOT NULL,
    token uuid,
    held_until timestamptz NOT NULL,
    CONSTRAINT {~locks_pk} PRIMARY KEY (name)
);
