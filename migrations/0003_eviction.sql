-- The data of eviction (cachegraph/store/local/eviction.py), which a hit does not read. Triggers keep the sums
-- whoever writes, older releases included. Each trigger is on one line, because a statement ends at a
-- semicolon at the end of a line.

-- `clock` is the clock of eviction at the last use, `referrers` the number of entries that refer to this one.
ALTER TABLE entry ADD COLUMN clock REAL NOT NULL DEFAULT 0;
ALTER TABLE entry ADD COLUMN referrers INTEGER NOT NULL DEFAULT 0;

-- The worth of entries without referrers: seconds saved per byte, aged. Eviction starts with the least.
CREATE INDEX entry_by_worth ON entry (clock + (uses + 1) * max(build_seconds - load_seconds, 0.0) / (max(stored_size, payload_size) + blob_size + 1)) WHERE referrers = 0;

-- The keys of the entries that an entry refers to, stored or not.
CREATE TABLE reference (
    entry_id INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (entry_id, digest),
    FOREIGN KEY (entry_id) REFERENCES entry (id) ON DELETE CASCADE
);

CREATE INDEX reference_by_digest ON reference (digest);

-- One row: the clock, and the bytes of all blobs that entries refer to, each counted once.
CREATE TABLE eviction (
    id INTEGER NOT NULL PRIMARY KEY,
    clock REAL NOT NULL,
    blob_bytes INTEGER NOT NULL
);

INSERT INTO eviction (id, clock, blob_bytes)
SELECT 1, 0.0, coalesce(sum(size), 0) FROM (SELECT max(size) AS size FROM blob_reference GROUP BY blob);

CREATE TRIGGER entry_begins AFTER INSERT ON entry BEGIN UPDATE entry SET clock = (SELECT clock FROM eviction), referrers = (SELECT count(*) FROM reference WHERE digest = NEW.digest) WHERE id = NEW.id; END;
CREATE TRIGGER entry_is_used AFTER UPDATE OF last_used ON entry BEGIN UPDATE entry SET clock = (SELECT clock FROM eviction) WHERE id = NEW.id; END;
CREATE TRIGGER reference_begins AFTER INSERT ON reference BEGIN UPDATE entry SET referrers = referrers + 1 WHERE digest = NEW.digest; END;
CREATE TRIGGER reference_ends AFTER DELETE ON reference BEGIN UPDATE entry SET referrers = referrers - 1 WHERE digest = OLD.digest; END;
CREATE TRIGGER blob_begins AFTER INSERT ON blob_reference WHEN (SELECT count(*) FROM blob_reference WHERE blob = NEW.blob) = 1 BEGIN UPDATE eviction SET blob_bytes = blob_bytes + NEW.size; END;
CREATE TRIGGER blob_ends AFTER DELETE ON blob_reference WHEN NOT EXISTS (SELECT 1 FROM blob_reference WHERE blob = OLD.blob) BEGIN UPDATE eviction SET blob_bytes = blob_bytes - OLD.size; END;
