-- All instants are whole microseconds since the Unix epoch, by the server's clock. Text that
-- identifies is VARBINARY (UTF-8), so that it compares byte for byte, trailing spaces included.

-- Open rows alone. One index serves every claim: (shape, place, seq).
-- shape 0: fresh, never delayed; place is 0.
-- shape 1: due; place is when: the end of a delay, or of the lease that the row is under.
-- shape 2: keyed; place is the lane, a hash of destination and key.
-- shape 3: parked; place is a hash of the destination.
-- shape 4: keyed and under a lease, perhaps expired; place is the lane.
CREATE TABLE IF NOT EXISTS {events} (
    seq            BIGINT NOT NULL AUTO_INCREMENT,
    id             BINARY(16) NOT NULL,
    shape          TINYINT NOT NULL,
    place          BIGINT NOT NULL,
    available_at   BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT,
    lease_until    BIGINT,
    lease_token    BINARY(16),
    attempts       INT NOT NULL DEFAULT 0,
    replays        INT NOT NULL DEFAULT 0,
    max_attempts   INT,
    size           BIGINT NOT NULL,
    event_type     VARBINARY(255) NOT NULL,
    destination    VARBINARY(2048) NOT NULL,
    `key`          VARBINARY(255),
    content_type   VARBINARY(255) NOT NULL,
    aggregate_type VARBINARY(255),
    aggregate_id   VARBINARY(255),
    headers        LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    dedup_key      VARBINARY(255),
    last_error     TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    payload        LONGBLOB NOT NULL,
    PRIMARY KEY (seq),
    UNIQUE KEY open_event_id (id),
    KEY queue (shape, place, seq),
    KEY token (lease_token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A claim of keyed rows locks the slots of their lanes (0 to 63) until it commits, so that two claims
-- never look at one key at once. A replay locks slot 64, so that it meets no other.
CREATE TABLE IF NOT EXISTS {guards} (
    slot TINYINT NOT NULL,
    PRIMARY KEY (slot)
) ENGINE = InnoDB;
INSERT IGNORE INTO {guards} (slot) VALUES
    (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
    (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31),
    (32), (33), (34), (35), (36), (37), (38), (39), (40), (41), (42), (43), (44), (45), (46), (47),
    (48), (49), (50), (51), (52), (53), (54), (55), (56), (57), (58), (59), (60), (61), (62), (63),
    (64);

-- Published rows, until they are pruned.
CREATE TABLE IF NOT EXISTS {published} (
    seq            BIGINT NOT NULL,
    id             BINARY(16) NOT NULL,
    created_at     BIGINT NOT NULL,
    published_at   BIGINT NOT NULL,
    attempts       INT NOT NULL,
    replays        INT NOT NULL,
    event_type     VARBINARY(255) NOT NULL,
    destination    VARBINARY(2048) NOT NULL,
    `key`          VARBINARY(255),
    content_type   VARBINARY(255) NOT NULL,
    aggregate_type VARBINARY(255),
    aggregate_id   VARBINARY(255),
    headers        LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    dedup_key      VARBINARY(255),
    last_error     TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    payload        LONGBLOB NOT NULL,
    PRIMARY KEY (seq),
    KEY age (published_at, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Dead letters, until an operator replays or discards them. lane is null without a key.
CREATE TABLE IF NOT EXISTS {dead} (
    seq            BIGINT NOT NULL,
    id             BINARY(16) NOT NULL,
    lane           BIGINT,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT,
    dead_at        BIGINT NOT NULL,
    attempts       INT NOT NULL,
    replays        INT NOT NULL,
    max_attempts   INT,
    event_type     VARBINARY(255) NOT NULL,
    destination    VARBINARY(2048) NOT NULL,
    `key`          VARBINARY(255),
    content_type   VARBINARY(255) NOT NULL,
    aggregate_type VARBINARY(255),
    aggregate_id   VARBINARY(255),
    headers        LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    dedup_key      VARBINARY(255),
    reason         VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    last_error     TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    payload        LONGBLOB NOT NULL,
    PRIMARY KEY (seq),
    KEY event_id (id),
    KEY lane (lane, seq),
    KEY age (dead_at, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What operators discarded, and why.
CREATE TABLE IF NOT EXISTS {discards} (
    seq            BIGINT NOT NULL,
    id             BINARY(16) NOT NULL,
    event_type     VARBINARY(255) NOT NULL,
    destination    VARBINARY(2048) NOT NULL,
    `key`          VARBINARY(255),
    death_reason   VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    last_error     TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    discard_reason TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    discarded_at   BIGINT NOT NULL,
    PRIMARY KEY (seq),
    KEY age (discarded_at, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- De-duplication keys; they outlive their event. mark tells the enqueue that stored the key.
CREATE TABLE IF NOT EXISTS {dedup} (
    dedup_key  VARBINARY(255) NOT NULL,
    id         BINARY(16) NOT NULL,
    mark       BINARY(16) NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (dedup_key),
    KEY age (created_at)
) ENGINE = InnoDB;

-- What holds destinations, and what a dead event does to its key: 'skip' or 'block'.
CREATE TABLE IF NOT EXISTS {destinations} (
    destination VARBINARY(2048) NOT NULL,
    hold_until  BIGINT,
    disabled    TINYINT NOT NULL DEFAULT 0,
    reason      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    dead_head   VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT 'skip',
    PRIMARY KEY (destination),
    KEY hold (disabled, hold_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Keys that wait for a dead letter.
CREATE TABLE IF NOT EXISTS {blocked} (
    destination VARBINARY(2048) NOT NULL,
    `key`       VARBINARY(255) NOT NULL,
    lane        BIGINT NOT NULL,
    seq         BIGINT NOT NULL,
    since       BIGINT NOT NULL,
    PRIMARY KEY (destination, `key`),
    KEY lane (lane)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
