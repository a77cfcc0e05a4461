"""Stores on servers: the files of a shared directory, in another place."""
