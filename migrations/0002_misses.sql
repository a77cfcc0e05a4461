-- Explanations of misses. A hit reads none of this, and an index without it still works.

-- The digest of each named part of each key, to find the stored key nearest to one that missed.
CREATE TABLE part (
    entry_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (entry_id, name),
    FOREIGN KEY (entry_id) REFERENCES entry (id) ON DELETE CASCADE
);

CREATE INDEX part_by_digest ON part (digest);

-- Removed entries, with time (seconds since 1970) and reason: the latest few thousand.
CREATE TABLE evicted (
    digest BLOB NOT NULL PRIMARY KEY,
    level TEXT NOT NULL,
    evicted REAL NOT NULL,
    why TEXT NOT NULL
);

CREATE INDEX evicted_by_time ON evicted (evicted);

-- The latest misses. `encoding` is that of the key, compressed with zlib, if no entry was stored for it.
CREATE TABLE miss (
    digest BLOB NOT NULL PRIMARY KEY,
    level TEXT NOT NULL,
    missed REAL NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    encoding BLOB
);

CREATE INDEX miss_by_time ON miss (missed);
