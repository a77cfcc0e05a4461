"""The way of a fast call, and what it does first and last: the state, the lock, the time."""

from __future__ import annotations

CALL = """
define ptr @call(ptr %self, ptr %arguments, i64 %count, ptr %names) {
  %block.at = getelementptr i8, ptr %self, i64 $TUPLE_HEAD
  %block.array = load ptr, ptr %block.at
  %block = call ptr @data(ptr %block.array)
  %api = call ptr @block.api(ptr %block)
  %due = call i64 @block.n_arguments(ptr %block)
  %has.count = icmp eq i64 %count, %due
  %has.no.names = icmp eq ptr %names, null
  %fits = and i1 %has.count, %has.no.names
  br i1 %fits, label %take, label %general
take:
  %state = call ptr @take(ptr %api, ptr %block)
  %is.taken = icmp ne ptr %state, null
  br i1 %is.taken, label %taken, label %general
taken:
  %array.offset = call i64 @block.array(ptr %block)
  %array.at = getelementptr i8, ptr %state, i64 %array.offset
  %array = load ptr, ptr %array.at
  %words = call ptr @data(ptr %array)
  %items = call ptr @part(ptr %words, ptr %block, i64 0)
  %made = call ptr @part(ptr %words, ptr %block, i64 1)
  %results = call ptr @part(ptr %words, ptr %block, i64 2)
  %registers = call ptr @part(ptr %words, ptr %block, i64 3)
  %code = call ptr @block.code(ptr %block)
  %machine = call ptr @block.machine(ptr %block)
  %elements = call i64 @gather(ptr %api, ptr %block, ptr %words, ptr %items, ptr %arguments)
  %are.taken = icmp sge i64 %elements, 0
  br i1 %are.taken, label %begin, label %refused
begin:
  %more = call i64 @share(ptr %api, ptr %block, ptr %items)
  %all = add i64 %elements, %more
  %is.long = call i1 @is_long(ptr %block, i64 %all)
  %n.items = call i64 @n_items(ptr %block)
  %start = call i64 @now()
  br label %run
run:
  %given = phi ptr [ %items, %begin ], [ %made, %made.all ]
  %n.given = phi i64 [ %n.items, %begin ], [ %n.made, %made.all ]
  %pc = phi i64 [ 0, %begin ], [ %resumed, %made.all ]
  %status = call i64 @run_long(ptr %api, ptr %machine, i1 %is.long, ptr %given, ptr %registers, ptr %code,
                               i64 %pc)
  switch i64 %status, label %stopped [
    i64 $YIELDED, label %yielded
    i64 $HALTED, label %halted
    i64 $NOT_BOUND, label %not.bound
  ]
yielded:
  %site = call ptr @site(ptr %block, ptr %registers)
  %n.made = load i64, ptr %site
  %is.scratch = icmp eq i64 %n.made, 0
  br i1 %is.scratch, label %stopped, label %make
make:
  %are.made = call i1 @make(ptr %api, ptr %site, ptr %registers, ptr %made, ptr %results)
  br i1 %are.made, label %made.all, label %stopped
made.all:
  %resumed = load i64, ptr %registers
  br label %run
halted:
  call void @note_time(ptr %block, i64 %start)
  %is.unsettled = load i64, ptr %words
  %returns = call i64 @block.returns(ptr %block)
  %is.dict = icmp eq i64 %returns, $DICT
  %is.odd = zext i1 %is.dict to i64
  %left = or i64 %is.unsettled, %is.odd
  %is.left = icmp ne i64 %left, 0
  br i1 %is.left, label %stopped, label %done
done:
  %value = call ptr @returned(ptr %api, ptr %block, ptr %results)
  %is.value = icmp ne ptr %value, null
  br i1 %is.value, label %update, label %failed
update:
  call void @store_updates(ptr %api, ptr %block, ptr %results)
  call void @release_all(ptr %api, ptr %block, ptr %items, ptr %results)
  call void @put_back(ptr %api, ptr %block, ptr %state)
  ret ptr %value
failed:
  call void @release_all(ptr %api, ptr %block, ptr %items, ptr %results)
  call void @Py_DecRef(ptr %api, ptr %state)
  ret ptr null
stopped:
  %n.left = phi i64 [ %n.given, %run ], [ 0, %yielded ], [ 0, %make ], [ 0, %halted ]
  %finished = call ptr @leave(ptr %api, ptr %block, ptr %state, i64 %status,
                              ptr %items, ptr %given, i64 %n.left, ptr %results)
  ret ptr %finished
not.bound:
  call void @release_all(ptr %api, ptr %block, ptr %items, ptr %results)
  br label %refused
refused:
  call void @put_back(ptr %api, ptr %block, ptr %state)
  br label %general
general:
  %general.call = call ptr @block.general(ptr %block)
  %general.value = call ptr @PyObject_Vectorcall(ptr %api, ptr %general.call,
                                                 ptr %arguments, i64 %count, ptr %names)
  ret ptr %general.value
}

define internal ptr @data(ptr %array) alwaysinline {
  %at = getelementptr i8, ptr %array, i64 $DATA
  %data = load ptr, ptr %at
  ret ptr %data
}

define internal ptr @type(ptr %object) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 $TYPE
  %type = load ptr, ptr %at
  ret ptr %type
}

define internal i64 @n_items(ptr %block) alwaysinline {
  %n.arguments = call i64 @block.n_arguments(ptr %block)
  %n.shared = call i64 @block.n_shared(ptr %block)
  %sum = add i64 %n.arguments, %n.shared
  ret i64 %sum
}

; Return a part of the words of a state: its items, the arrays just made, its results or its registers.
define internal ptr @part(ptr %words, ptr %block, i64 %number) alwaysinline {
  %places = call ptr @block.parts(ptr %block)
  %at = getelementptr i64, ptr %places, i64 %number
  %place = load i64, ptr %at
  %part = getelementptr i64, ptr %words, i64 %place
  ret ptr %part
}

; Take a state from the pool: a new reference, or null.
define internal ptr @take(ptr %api, ptr %block) {
  %pool = call ptr @block.pool(ptr %block)
  %size = call i64 @PyList_Size(ptr %api, ptr %pool)
  %is.some = icmp sgt i64 %size, 0
  br i1 %is.some, label %some, label %none
some:
  %last = sub i64 %size, 1
  %state = call ptr @PyList_GetItem(ptr %api, ptr %pool, i64 %last)
  call void @Py_IncRef(ptr %api, ptr %state)
  %failure = call i32 @PyList_SetSlice(ptr %api, ptr %pool, i64 %last, i64 %size, ptr null)
  %is.taken = icmp eq i32 %failure, 0
  br i1 %is.taken, label %taken, label %failed
taken:
  ret ptr %state
failed:
  call void @PyErr_Clear(ptr %api)
  call void @Py_DecRef(ptr %api, ptr %state)
  ret ptr null
none:
  ret ptr null
}

; Put a state back into the pool, or lose it if the pool cannot grow.
define internal void @put_back(ptr %api, ptr %block, ptr %state) {
  %pool = call ptr @block.pool(ptr %block)
  %failure = call i32 @PyList_Append(ptr %api, ptr %pool, ptr %state)
  call void @Py_DecRef(ptr %api, ptr %state)
  %is.back = icmp eq i32 %failure, 0
  br i1 %is.back, label %back, label %failed
failed:
  call void @PyErr_Clear(ptr %api)
  ret void
back:
  ret void
}

; Run the machine, without the interpreter's lock if that may take long.
define internal i64 @run_long(ptr %api, ptr %machine, i1 %is.long, ptr %items, ptr %registers, ptr %code,
                              i64 %pc) alwaysinline {
  %items.address = ptrtoint ptr %items to i64
  br i1 %is.long, label %long, label %short
long:
  %thread = call ptr @PyEval_SaveThread(ptr %api)
  %long.status = call i64 %machine(i64 %items.address, ptr %registers, ptr %code, i64 %pc)
  call void @PyEval_RestoreThread(ptr %api, ptr %thread)
  ret i64 %long.status
short:
  %status = call i64 %machine(i64 %items.address, ptr %registers, ptr %code, i64 %pc)
  ret i64 %status
}

; A call may take long if its arguments have many elements, or if the last call took more than a 4096th
; of what is long for the machine: about 30 microseconds.
define internal i1 @is_long(ptr %block, i64 %elements) alwaysinline {
  %long = call i64 @long()
  %last = call i64 @block.ticks(ptr %block)
  %few = lshr i64 %long, 12
  %is.slow = icmp ugt i64 %last, %few
  %is.large = icmp ugt i64 %elements, $MANY
  %is.long = or i1 %is.slow, %is.large
  ret i1 %is.long
}

define internal void @note_time(ptr %block, i64 %start) alwaysinline {
  %end = call i64 @now()
  %ticks = sub i64 %end, %start
  call void @set_ticks(ptr %block, i64 %ticks)
  ret void
}

define internal void @set_ticks(ptr %block, i64 %ticks) alwaysinline {
  %at = getelementptr i64, ptr %block, i64 $TICKS
  store i64 %ticks, ptr %at
  ret void
}
"""
"""Defines @call, which the source shows, and the functions that read the parts of a state."""
