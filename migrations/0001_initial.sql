-- The index of one cache directory; cachegraph/store/local/schema.py describes the same tables.
-- A statement ends at a semicolon at the end of a line; comments have lines of their own.

-- The description of each entry, for listing, accounting and eviction. A hit neither needs nor trusts it.
CREATE TABLE entry (
    id INTEGER NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    level TEXT NOT NULL,
    format INTEGER NOT NULL,
    payload_size INTEGER NOT NULL,
    blob_size INTEGER NOT NULL,
    stored_size INTEGER NOT NULL,
    seconds TEXT NOT NULL,
    build_seconds REAL NOT NULL,
    load_seconds REAL NOT NULL,
    created REAL NOT NULL,
    last_used REAL NOT NULL,
    uses INTEGER NOT NULL,
    summary TEXT NOT NULL,
    version TEXT NOT NULL
);

CREATE INDEX entry_by_last_used ON entry (last_used);

-- The content of a hit, as one checksummed byte string: cachegraph/store/record.py.
CREATE TABLE record (
    entry_id INTEGER NOT NULL PRIMARY KEY,
    content BLOB NOT NULL,
    FOREIGN KEY (entry_id) REFERENCES entry (id) ON DELETE CASCADE
);

-- The canonical encoding of the key, compressed with zlib; read only to show a key or to explain a miss.
CREATE TABLE encoding (
    entry_id INTEGER NOT NULL PRIMARY KEY,
    content BLOB NOT NULL,
    FOREIGN KEY (entry_id) REFERENCES entry (id) ON DELETE CASCADE
);

-- The blob files that an entry refers to, so that unused ones can be found. The name '' is the payload.
CREATE TABLE blob_reference (
    entry_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    blob BLOB NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (entry_id, name),
    FOREIGN KEY (entry_id) REFERENCES entry (id) ON DELETE CASCADE
);

CREATE INDEX blob_reference_by_blob ON blob_reference (blob);

-- Counts by UTC day: outcome is hit, miss or bypass; seconds are saved on a hit and spent on a miss.
CREATE TABLE activity (
    day INTEGER NOT NULL,
    level TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    events INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (day, level, outcome, reason)
);
