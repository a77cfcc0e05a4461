"""What the commands do to a store: prune, verify, diagnose."""
