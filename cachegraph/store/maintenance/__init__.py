"""Maintenance of a store, for the commands: pruning, verifying, examining, listing."""
