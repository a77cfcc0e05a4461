-- The bytes of all entries' rows, kept like the bytes of their blobs, whoever writes: what the cache holds is the sum of both
-- (cachegraph/store/local/sizes.py). And the latest entries of a level, for how long building one takes.

ALTER TABLE eviction ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE eviction SET stored_bytes = (SELECT coalesce(sum(stored_size), 0) FROM entry);

CREATE TRIGGER entry_is_counted AFTER INSERT ON entry BEGIN UPDATE eviction SET stored_bytes = stored_bytes + NEW.stored_size; END;
CREATE TRIGGER entry_is_resized AFTER UPDATE OF stored_size ON entry WHEN NEW.stored_size != OLD.stored_size BEGIN UPDATE eviction SET stored_bytes = stored_bytes + NEW.stored_size - OLD.stored_size; END;
CREATE TRIGGER entry_is_gone AFTER DELETE ON entry BEGIN UPDATE eviction SET stored_bytes = stored_bytes - OLD.stored_size; END;

CREATE INDEX entry_by_level ON entry (level, id);
