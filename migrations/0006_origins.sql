-- Where copies of shared entries came from, as their signed files said, so that a revocation can reach them and
-- an export can keep their signatures (cachegraph/store/local/origins.py). A hit reads none of it. What was
-- built here has no row.
CREATE TABLE origin (
    entry_id INTEGER NOT NULL PRIMARY KEY,
    signer BLOB NOT NULL,
    signature BLOB NOT NULL,
    writer TEXT NOT NULL,
    version TEXT NOT NULL,
    description BLOB NOT NULL,
    FOREIGN KEY (entry_id) REFERENCES entry (id) ON DELETE CASCADE
);
