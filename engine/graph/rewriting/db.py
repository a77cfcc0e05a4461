"""Databases of rewrites, under PyTensor's path."""

from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.database import (
    EquilibriumDB,
    LocalGroupDB,
    ProxyDB,
    RewriteDatabase,
    SequenceDB,
    TopoDB,
)

__all__ = [
    "EquilibriumDB",
    "LocalGroupDB",
    "ProxyDB",
    "RewriteDatabase",
    "RewriteDatabaseQuery",
    "SequenceDB",
    "TopoDB",
]
