"""The arguments of a fast call, taken as items for the machine."""

from __future__ import annotations

GATHER = """
; Take the arguments as items. Return how many elements they have, or -1 if one is neither an array nor
; a number that its input takes.
define internal i64 @gather(ptr %api, ptr %block, ptr %words, ptr %items, ptr %arguments) {
  %kinds = call ptr @block.kinds(ptr %block)
  %count = call i64 @block.n_arguments(ptr %block)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %next ]
  %elements = phi i64 [ 0, %0 ], [ %sum, %next ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %look, label %end
look:
  %argument.at = getelementptr ptr, ptr %arguments, i64 %i
  %argument = load ptr, ptr %argument.at
  %size = call i64 @elements(ptr %api, ptr %argument)
  %is.array = icmp sge i64 %size, 0
  br i1 %is.array, label %next, label %number
number:
  %kind.place = mul i64 %i, 3
  %kind.at = getelementptr i64, ptr %kinds, i64 %kind.place
  %limit.at = getelementptr i64, ptr %kind.at, i64 1
  %own.type.at = getelementptr i64, ptr %kind.at, i64 2
  %kind = load i64, ptr %kind.at
  %limit = load i64, ptr %limit.at
  %own.type = load ptr, ptr %own.type.at
  %own.place = add i64 %i, 1
  %own.at = getelementptr ptr, ptr %words, i64 %own.place
  %own = load ptr, ptr %own.at
  %is.taken = call i1 @take_number(ptr %api, i64 %kind, i64 %limit, ptr %own.type, ptr %argument, ptr %own)
  br i1 %is.taken, label %next, label %refused
next:
  %item = phi ptr [ %argument, %look ], [ %own, %number ]
  %counted = phi i64 [ %size, %look ], [ 1, %number ]
  %item.at = getelementptr ptr, ptr %items, i64 %i
  store ptr %item, ptr %item.at
  %sum = add i64 %elements, %counted
  %following = add i64 %i, 1
  br label %test
end:
  ret i64 %elements
refused:
  ret i64 -1
}

; Take the values of shared variables as items behind the arguments, each a new reference. Return how many
; elements they have.
define internal i64 @share(ptr %api, ptr %block, ptr %items) {
  %storages = call ptr @block.storages(ptr %block)
  %first = call i64 @block.n_arguments(ptr %block)
  %count = call i64 @block.n_shared(ptr %block)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %elements = phi i64 [ 0, %0 ], [ %sum, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %storage.at = getelementptr ptr, ptr %storages, i64 %i
  %storage = load ptr, ptr %storage.at
  %value = call ptr @PyList_GetItem(ptr %api, ptr %storage, i64 0)
  call void @Py_IncRef(ptr %api, ptr %value)
  %place = add i64 %first, %i
  %item.at = getelementptr ptr, ptr %items, i64 %place
  store ptr %value, ptr %item.at
  %size = call i64 @elements(ptr %api, ptr %value)
  %sum = add i64 %elements, %size
  %following = add i64 %i, 1
  br label %test
end:
  ret i64 %elements
}

; Return how many elements an array has; -1 for any other object.
define internal i64 @elements(ptr %api, ptr %object) {
  %type = call ptr @type(ptr %object)
  %array.type = call ptr @object.ndarray(ptr %api)
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %array, label %other
array:
  %size = call i64 @array.elements(ptr %object)
  ret i64 %size
other:
  ret i64 -1
}
"""
"""Defines @gather for the arguments, and @share for the values of shared variables."""
