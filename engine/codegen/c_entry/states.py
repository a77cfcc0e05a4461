"""The states of a C entry: each call has one to itself, and leaves it, with its memory, to later calls."""

from __future__ import annotations

STATES = """
; Take a slot that no other call has; `own` if all are taken.
define internal ptr @take(ptr %context, ptr %own) noinline optnone {
  %slots = call ptr @context.slots(ptr %context)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %next ]
  %is.more = icmp ult i64 %i, $SLOTS
  br i1 %is.more, label %look, label %none
look:
  %place = mul i64 %i, $SLOT_WORDS
  %slot = getelementptr i64, ptr %slots, i64 %place
  %busy = load atomic i64, ptr %slot monotonic, align 8
  %is.free = icmp eq i64 %busy, 0
  br i1 %is.free, label %try, label %next
try:
  %tried = cmpxchg ptr %slot, i64 0, i64 1 acquire monotonic, align 8
  %is.taken = extractvalue {i64, i1} %tried, 1
  br i1 %is.taken, label %taken, label %next
next:
  %following = add i64 %i, 1
  br label %test
taken:
  ret ptr %slot
none:
  %state.at = getelementptr i64, ptr %own, i64 1
  store i64 1, ptr %own
  store i64 0, ptr %state.at
  ret ptr %own
}

; Give a slot back to later calls, or free what is in `own`.
define internal void @leave(ptr %context, ptr %slot, ptr %own) noinline optnone {
  %is.own = icmp eq ptr %slot, %own
  br i1 %is.own, label %free, label %back
free:
  call void @empty(ptr %context, ptr %own)
  ret void
back:
  store atomic i64 0, ptr %slot release, align 8
  ret void
}

; Return the state in a slot, made if there is none; null if there is no memory for it.
define internal ptr @state(ptr %context, ptr %slot) noinline optnone {
  %state.at = getelementptr ptr, ptr %slot, i64 1
  %present = load ptr, ptr %state.at
  %is.present = icmp ne ptr %present, null
  br i1 %is.present, label %end, label %make
make:
  %made = call ptr @new_state(ptr %context)
  store ptr %made, ptr %state.at
  br label %end
end:
  %state = phi ptr [ %present, %0 ], [ %made, %make ]
  ret ptr %state
}

; Return a copy of the template, with the addresses of its own parts; null if there is no memory for it.
define internal ptr @new_state(ptr %context) noinline optnone {
  %words = call i64 @context.n_words(ptr %context)
  %template = call ptr @context.template(ptr %context)
  %relocations = call ptr @context.relocations(ptr %context)
  %count = call i64 @context.n_relocations(ptr %context)
  %bytes = mul i64 %words, 8
  %state = call ptr @allocate(ptr %context, i64 %bytes)
  %is.made = icmp ne ptr %state, null
  br i1 %is.made, label %copy, label %failed
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %template, i64 %bytes, i1 false)
  br label %test
test:
  %i = phi i64 [ 0, %copy ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %relocation.at = getelementptr i64, ptr %relocations, i64 %i
  %relocation = load i64, ptr %relocation.at
  %at = getelementptr i64, ptr %state, i64 %relocation
  %word = load i64, ptr %at
  %address = getelementptr i64, ptr %state, i64 %word
  store ptr %address, ptr %at
  %following = add i64 %i, 1
  br label %test
end:
  ret ptr %state
failed:
  ret ptr null
}

; Free the states of all slots. No call may run.
define internal i64 @dispose(ptr %context) noinline optnone {
  %slots = call ptr @context.slots(ptr %context)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %is.more = icmp ult i64 %i, $SLOTS
  br i1 %is.more, label %body, label %end
body:
  %place = mul i64 %i, $SLOT_WORDS
  %slot = getelementptr i64, ptr %slots, i64 %place
  call void @empty(ptr %context, ptr %slot)
  %following = add i64 %i, 1
  br label %test
end:
  ret i64 0
}

; Free the state in a slot and all of its memory.
define internal void @empty(ptr %context, ptr %slot) noinline optnone {
  %state.at = getelementptr ptr, ptr %slot, i64 1
  %state = load ptr, ptr %state.at
  store ptr null, ptr %state.at
  %count = call i64 @context.n_memories(ptr %context)
  %is.there = icmp ne ptr %state, null
  br i1 %is.there, label %test, label %end
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %last
body:
  %place = mul i64 %i, 2
  %memory.at = getelementptr i64, ptr %state, i64 %place
  %memory = load ptr, ptr %memory.at
  call void @free(ptr %context, ptr %memory)
  %following = add i64 %i, 1
  br label %test
last:
  call void @free(ptr %context, ptr %state)
  br label %end
end:
  ret void
}

; Return memory number `number` of a state, at least `bytes`; null if there is none.
define internal ptr @room(ptr %context, ptr %state, i64 %number, i64 %bytes) noinline optnone {
  %place = mul i64 %number, 2
  %memory.at = getelementptr i64, ptr %state, i64 %place
  %size.at = getelementptr i64, ptr %memory.at, i64 1
  %present = load ptr, ptr %memory.at
  %size = load i64, ptr %size.at
  %is.present = icmp ne ptr %present, null
  %is.enough = icmp ule i64 %bytes, %size
  %is.kept = and i1 %is.present, %is.enough
  br i1 %is.kept, label %kept, label %other
kept:
  ret ptr %present
other:
  call void @free(ptr %context, ptr %present)
  %is.some = icmp ne i64 %bytes, 0
  %wanted = select i1 %is.some, i64 %bytes, i64 1
  %made = call ptr @allocate(ptr %context, i64 %wanted)
  store ptr %made, ptr %memory.at
  store i64 %bytes, ptr %size.at
  ret ptr %made
}

define internal ptr @allocate(ptr %context, i64 %bytes) alwaysinline {
  %function = call ptr @context.allocate(ptr %context)
  %memory = call ptr %function(i64 %bytes)
  ret ptr %memory
}

define internal void @free(ptr %context, ptr %memory) alwaysinline {
  %function = call ptr @context.free(ptr %context)
  call void %function(ptr %memory)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
"""Defines @take, @leave, @state, @dispose and @room."""
