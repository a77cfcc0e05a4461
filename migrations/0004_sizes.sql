-- The sum of the bytes of all rows of entries, kept by triggers like that of their blobs; the cache holds both
-- together (cachegraph/store/local/sizes.py). And an index of the latest entries of a level, to estimate how
-- long a build takes.

ALTER TABLE eviction ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE eviction SET stored_bytes = (SELECT coalesce(sum(stored_size), 0) FROM entry);

CREATE TRIGGER entry_is_counted AFTER INSERT ON entry BEGIN UPDATE eviction SET stored_bytes = stored_bytes + NEW.stored_size; END;
CREATE TRIGGER entry_is_resized AFTER UPDATE OF stored_size ON entry WHEN NEW.stored_size != OLD.stored_size BEGIN UPDATE eviction SET stored_bytes = stored_bytes + NEW.stored_size - OLD.stored_size; END;
CREATE TRIGGER entry_is_gone AFTER DELETE ON entry BEGIN UPDATE eviction SET stored_bytes = stored_bytes - OLD.stored_size; END;

CREATE INDEX entry_by_level ON entry (level, id);
