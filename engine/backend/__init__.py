"""The backend: from a lowered loop nest to machine code in this process.

In the order data flows: `loops` (what a kernel is), `kernels` (families that build one), `numba` (compiles one),
`objects` and `container` (what is stored), `load` (links it without numba), `machine` (walks a program of kernels).
"""
