-- Every night, by cron: psql -d cachegraph -f postgresql-prune.sql
-- Removes what was written 90 days ago, in use or not: the next job that misses it builds it again.
-- What signers have revoked (v1/r/) stays.
DELETE FROM cachegraph_file
WHERE written < now() - interval '90 days' AND NOT starts_with(name, 'v1/r/');
