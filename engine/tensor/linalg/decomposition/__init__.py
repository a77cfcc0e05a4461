"""Decompositions, each in a module, under PyTensor's path."""

from engine.tensor.linalg.decomposition import cholesky, eigen, lu, qr, schur, svd

__all__ = ["cholesky", "eigen", "lu", "qr", "schur", "svd"]
