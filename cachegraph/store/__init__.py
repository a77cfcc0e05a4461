"""The store: cache directories, each with an index (SQLite) and blobs (files), or with files alone.

Each floor imports only from those below it, lazy imports and imports for types included:

    maintenance                                 pruning, verifying and examining a store, for the commands
    tiers                                       the stores of one cache, a local one before shared ones
    shared                                      a directory of immutable files that many hosts use
    local                                       an index and blobs on one machine
    claims                                      locks and leases, so that one process builds
    protocol, artifacts, quarantine, failures   the interface of a store, and what both kinds share
    activity, blobs; files, record; trust; signing, entry, filesystem; paths
"""
