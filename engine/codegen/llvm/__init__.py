"""Kernels printed as LLVM IR text, optimized and emitted by LLVM."""
