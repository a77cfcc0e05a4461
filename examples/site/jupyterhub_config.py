"""A part of JupyterHub's configuration: users share what the hub's operator has compiled.

The user cachegraph (number 990) fills /srv/cachegraph, for example with the notebooks of a course; every
server reads it and keeps what its own user compiles in that user's home.
"""

c = get_config()  # noqa: F821 (JupyterHub defines it)

c.Spawner.environment = {
    "CACHEGRAPH_SHARED_DIR": "/srv/cachegraph",
    "CACHEGRAPH_TRUST": "published:990",
    "CACHEGRAPH_MAX_SIZE": "1GB",
}
