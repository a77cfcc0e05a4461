"""Arrays of numpy as LLVM IR text: what the fast call and the C entry read of their structs."""

from __future__ import annotations

ARRAYS = """
; Return how many elements an array has.
define internal i64 @array.elements(ptr %array) noinline optnone {
  %rank.at = getelementptr i8, ptr %array, i64 $RANK
  %rank = load i32, ptr %rank.at
  %lengths.at = getelementptr i8, ptr %array, i64 $LENGTHS
  %lengths = load ptr, ptr %lengths.at
  br label %test
test:
  %i = phi i32 [ 0, %0 ], [ %following, %body ]
  %size = phi i64 [ 1, %0 ], [ %product, %body ]
  %is.more = icmp slt i32 %i, %rank
  br i1 %is.more, label %body, label %end
body:
  %length.at = getelementptr i64, ptr %lengths, i32 %i
  %length = load i64, ptr %length.at
  %product = mul i64 %size, %length
  %following = add i32 %i, 1
  br label %test
end:
  ret i64 %size
}
"""
"""Defines @array.elements. RANK and LENGTHS are offsets in the struct."""
