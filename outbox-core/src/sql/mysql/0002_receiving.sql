-- Requests by their idempotency key. answer: none while a run is in flight, under lease_until.
CREATE TABLE IF NOT EXISTS {idempotency} (
    scope       VARBINARY(255) NOT NULL,
    `key`       VARBINARY(255) NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    token       BINARY(16) NOT NULL,
    lease_until BIGINT,
    answer      LONGBLOB,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (scope, `key`),
    KEY age (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Messages that were accepted.
CREATE TABLE IF NOT EXISTS {inbox} (
    source      VARBINARY(255) NOT NULL,
    id          VARBINARY(255) NOT NULL,
    fingerprint BINARY(32),
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (source, id),
    KEY age (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Leased locks. token: none where the lock was given back and cools down until held_until.
CREATE TABLE IF NOT EXISTS {locks} (
    name       VARBINARY(255) NOT NULL,
    token      BINARY(16),
    held_until BIGINT NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
