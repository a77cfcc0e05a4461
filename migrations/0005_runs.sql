-- The processes that used the cache, written with their counts: began when the cache was opened, ended with
-- the last counts. The entries of the last run are those used since it began (cachegraph/store/local/runs.py).
CREATE TABLE run (
    began REAL NOT NULL,
    process INTEGER NOT NULL,
    ended REAL NOT NULL,
    PRIMARY KEY (began, process)
);
