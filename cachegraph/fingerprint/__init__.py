"""Fingerprints: the digest of a value's canonical encoding, the same in every process."""
