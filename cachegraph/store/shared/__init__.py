"""The store that many hosts share: a directory of immutable files."""
