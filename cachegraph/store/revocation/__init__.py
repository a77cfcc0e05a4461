"""Revocation: what a signer takes back is believed no more, by readers and by caches that hold copies."""
