"""Databases of rewrites, under PyTensor's path."""

from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.database import EquilibriumDB, RewriteDatabase, SequenceDB

__all__ = ["EquilibriumDB", "RewriteDatabase", "RewriteDatabaseQuery", "SequenceDB"]
