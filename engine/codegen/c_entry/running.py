"""The run of a C entry's program: its inputs, its stops for memory, its end."""

from __future__ import annotations

RUNNING = """
; Run the program. Return false if it fails, or if what it requires does not hold.
define internal i1 @compute(ptr %context, ptr %state, ptr %point, ptr %user) noinline optnone {
  %is.state = icmp ne ptr %state, null
  br i1 %is.state, label %begin, label %failed
begin:
  call void @give(ptr %context, ptr %state, ptr %point, ptr %user)
  %run.function = call ptr @context.run(ptr %context)
  %code = call ptr @context.code(ptr %context)
  %registers = call ptr @part.registers(ptr %context, ptr %state)
  %items = call ptr @part.items(ptr %context, ptr %state)
  br label %run
run:
  %given = phi ptr [ %items, %begin ], [ %made, %yielded ], [ %given, %again ]
  %pc = phi i64 [ 0, %begin ], [ %behind, %yielded ], [ %here, %again ]
  %items.address = ptrtoint ptr %given to i64
  %status = call i64 %run.function(i64 %items.address, ptr %registers, ptr %code, i64 %pc)
  switch i64 %status, label %failed [
    i64 $YIELDED, label %stopped
    i64 $PAUSED, label %again
    i64 $HALTED, label %halted
  ]
again:
  %here = load i64, ptr %registers
  br label %run
stopped:
  %made = call ptr @make(ptr %context, ptr %state, ptr %registers)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %yielded, label %failed
yielded:
  %behind = load i64, ptr %registers
  br label %run
halted:
  %held.word = call i64 @context.held(ptr %context)
  %is.asked = icmp sge i64 %held.word, 0
  br i1 %is.asked, label %look, label %done
look:
  %held.array = getelementptr i64, ptr %state, i64 %held.word
  %held.at = call ptr @data(ptr %held.array)
  %held = load i8, ptr %held.at
  %holds = icmp ne i8 %held, 0
  br i1 %holds, label %done, label %failed
done:
  ret i1 true
failed:
  ret i1 false
}

; Set the arrays of the inputs: the point, and what the user data say.
define internal void @give(ptr %context, ptr %state, ptr %point, ptr %user) noinline optnone {
  %inputs = call ptr @context.inputs(ptr %context)
  %count = call i64 @context.n_inputs(ptr %context)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %next ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %place = mul i64 %i, 3
  %record = getelementptr i64, ptr %inputs, i64 %place
  %data.offset.at = getelementptr i64, ptr %record, i64 1
  %lengths.offset.at = getelementptr i64, ptr %record, i64 2
  %word = load i64, ptr %record
  %data.offset = load i64, ptr %data.offset.at
  %lengths.offset = load i64, ptr %lengths.offset.at
  %array = getelementptr i64, ptr %state, i64 %word
  %data.at = getelementptr i8, ptr %array, i64 $DATA
  %is.shared = icmp sge i64 %data.offset, 0
  br i1 %is.shared, label %shared, label %free
free:
  store ptr %point, ptr %data.at
  br label %next
shared:
  %shared.at = getelementptr i8, ptr %user, i64 %data.offset
  %data = load ptr, ptr %shared.at
  %lengths = getelementptr i8, ptr %user, i64 %lengths.offset
  %lengths.at = getelementptr i8, ptr %array, i64 $LENGTHS
  store ptr %data, ptr %data.at
  store ptr %lengths, ptr %lengths.at
  br label %next
next:
  %following = add i64 %i, 1
  br label %test
end:
  ret void
}

; Make what the program stopped for. Return the items to go on with, or null if there is no memory.
define internal ptr @make(ptr %context, ptr %state, ptr %registers) noinline optnone {
  %sites = call ptr @context.sites(ptr %context)
  %number.at = getelementptr i64, ptr %registers, i64 1
  %number = load i64, ptr %number.at
  %place.at = getelementptr i64, ptr %sites, i64 %number
  %place = load i64, ptr %place.at
  %site = getelementptr i64, ptr %context, i64 %place
  %count = load i64, ptr %site
  %is.scratch = icmp eq i64 %count, 0
  br i1 %is.scratch, label %scratch, label %arrays
scratch:
  %is.grown = call i1 @grow(ptr %context, ptr %state, ptr %registers, ptr %site)
  %grown = select i1 %is.grown, ptr %state, ptr null
  ret ptr %grown
arrays:
  %table.at = getelementptr i64, ptr %site, i64 1
  %table.word = load i64, ptr %table.at
  %table = getelementptr i64, ptr %state, i64 %table.word
  %first = getelementptr i64, ptr %site, i64 2
  br label %test
test:
  %i = phi i64 [ 0, %arrays ], [ %following, %next ]
  %record = phi ptr [ %first, %arrays ], [ %behind, %next ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %behind = call ptr @new_array(ptr %context, ptr %state, ptr %registers, ptr %record)
  %is.made = icmp ne ptr %behind, null
  br i1 %is.made, label %next, label %failed
next:
  %following = add i64 %i, 1
  br label %test
end:
  ret ptr %table
failed:
  ret ptr null
}

; Make room for the scratch memory of a site. The registers never claim memory that is not there.
define internal i1 @grow(ptr %context, ptr %state, ptr %registers, ptr %site) noinline optnone {
  %need.at = getelementptr i64, ptr %site, i64 1
  %base.at = getelementptr i64, ptr %site, i64 2
  %present.at = getelementptr i64, ptr %site, i64 3
  %memory.at = getelementptr i64, ptr %site, i64 4
  %need.register = load i64, ptr %need.at
  %base.register = load i64, ptr %base.at
  %present.register = load i64, ptr %present.at
  %memory = load i64, ptr %memory.at
  %need.word = getelementptr i64, ptr %registers, i64 %need.register
  %base.word = getelementptr i64, ptr %registers, i64 %base.register
  %present.word = getelementptr i64, ptr %registers, i64 %present.register
  %need = load i64, ptr %need.word
  store i64 0, ptr %present.word
  %made = call ptr @room(ptr %context, ptr %state, i64 %memory, i64 %need)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %done, label %failed
done:
  store ptr %made, ptr %base.word
  store i64 %need, ptr %present.word
  ret i1 true
failed:
  ret i1 false
}

; Set an array that the program makes: its lengths, and memory for its elements. Return what is behind its
; record, or null if there is no memory.
define internal ptr @new_array(ptr %context, ptr %state, ptr %registers, ptr %record) noinline optnone {
  %memory.at = getelementptr i64, ptr %record, i64 1
  %item.at = getelementptr i64, ptr %record, i64 2
  %rank.at = getelementptr i64, ptr %record, i64 3
  %dims = getelementptr i64, ptr %record, i64 4
  %word = load i64, ptr %record
  %memory = load i64, ptr %memory.at
  %item = load i64, ptr %item.at
  %rank = load i64, ptr %rank.at
  %array = getelementptr i64, ptr %state, i64 %word
  %lengths = getelementptr i8, ptr %array, i64 $ARRAY_SIZE
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %fits ]
  %bytes = phi i64 [ %item, %0 ], [ %product, %fits ]
  %is.more = icmp slt i64 %i, %rank
  br i1 %is.more, label %body, label %end
body:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at
  %register = getelementptr i64, ptr %registers, i64 %dim
  %length = load i64, ptr %register
  %length.at = getelementptr i64, ptr %lengths, i64 %i
  store i64 %length, ptr %length.at
  %both = call {i64, i1} @llvm.smul.with.overflow.i64(i64 %bytes, i64 %length)
  %product = extractvalue {i64, i1} %both, 0
  %overflows = extractvalue {i64, i1} %both, 1
  %is.negative = icmp slt i64 %length, 0
  %is.wrong = or i1 %overflows, %is.negative
  br i1 %is.wrong, label %failed, label %fits
fits:
  %following = add i64 %i, 1
  br label %test
end:
  %data = call ptr @room(ptr %context, ptr %state, i64 %memory, i64 %bytes)
  %is.made = icmp ne ptr %data, null
  br i1 %is.made, label %made, label %failed
made:
  %data.at = getelementptr i8, ptr %array, i64 $DATA
  store ptr %data, ptr %data.at
  %behind = getelementptr i64, ptr %dims, i64 %rank
  ret ptr %behind
failed:
  ret ptr null
}

; Return a part of a state: its registers, or the table of its inputs.
define internal ptr @part.registers(ptr %context, ptr %state) alwaysinline {
  %word = call i64 @context.registers(ptr %context)
  %part = getelementptr i64, ptr %state, i64 %word
  ret ptr %part
}
define internal ptr @part.items(ptr %context, ptr %state) alwaysinline {
  %word = call i64 @context.items(ptr %context)
  %part = getelementptr i64, ptr %state, i64 %word
  ret ptr %part
}
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
"""
"""Defines @compute."""
