"""The use log: files, which may be lost, of the keys that processes used and missed."""
