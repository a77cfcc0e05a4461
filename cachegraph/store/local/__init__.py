"""The store of one machine: an index in SQLite, and files for large content.

Everything that a compiling process reads or writes goes through sqlite3: a hit (index.py), a miss
(miss_reasons.py), a put (publication.py, eviction.py), and the listings of the commands (queries.py,
catalogue.py, statistics.py), which no compiling process imports. Each statement is written in one of
these modules only. schema.py describes the tables for people and for tests.
"""
