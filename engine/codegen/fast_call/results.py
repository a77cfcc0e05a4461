"""The results of a fast call: arrays made where the machine stops for them, in the end returned or stored."""

from __future__ import annotations

RESULTS = """
; Return the record of the site that the machine stopped at.
define internal ptr @site(ptr %block, ptr %registers) alwaysinline {
  %sites = call ptr @block.sites(ptr %block)
  %number.at = getelementptr i64, ptr %registers, i64 1
  %number = load i64, ptr %number.at
  %place.at = getelementptr i64, ptr %sites, i64 %number
  %place = load i64, ptr %place.at
  %site = getelementptr i64, ptr %block, i64 %place
  ret ptr %site
}

; Make the arrays of a site. Return false if one cannot be made.
define internal i1 @make(ptr %api, ptr %site, ptr %registers, ptr %made, ptr %results) {
  %count = load i64, ptr %site
  %first = getelementptr i64, ptr %site, i64 1
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %kept ]
  %record = phi ptr [ %first, %0 ], [ %behind, %kept ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %descriptor.at = getelementptr ptr, ptr %record, i64 1
  %skipped.at = getelementptr i64, ptr %record, i64 2
  %rank.at = getelementptr i64, ptr %record, i64 3
  %dims = getelementptr i64, ptr %record, i64 4
  %number = load i64, ptr %record
  %descriptor = load ptr, ptr %descriptor.at
  %skipped = load i64, ptr %skipped.at
  %rank = load i64, ptr %rank.at
  %array = call ptr @new_array(ptr %api, ptr %descriptor, i64 %rank, ptr %dims, ptr %registers)
  %is.made = icmp ne ptr %array, null
  br i1 %is.made, label %whole, label %failed
whole:
  %made.at = getelementptr ptr, ptr %made, i64 %i
  store ptr %array, ptr %made.at
  %is.whole = icmp eq i64 %skipped, 0
  br i1 %is.whole, label %kept, label %cut
cut:
  %view = call ptr @PySequence_GetSlice(ptr %api, ptr %array, i64 %skipped, i64 $MOST)
  call void @Py_DecRef(ptr %api, ptr %array)
  %is.cut = icmp ne ptr %view, null
  br i1 %is.cut, label %kept, label %failed
kept:
  %result = phi ptr [ %array, %whole ], [ %view, %cut ]
  %result.at = getelementptr ptr, ptr %results, i64 %number
  %before = load ptr, ptr %result.at
  store ptr %result, ptr %result.at
  call void @Py_DecRef(ptr %api, ptr %before)
  %behind = getelementptr i64, ptr %dims, i64 %rank
  %following = add i64 %i, 1
  br label %test
end:
  ret i1 true
failed:
  call void @PyErr_Clear(ptr %api)
  ret i1 false
}

; Return a new array with the lengths in the registers `dims`, or null.
define internal ptr @new_array(ptr %api, ptr %descriptor, i64 %rank, ptr %dims, ptr %registers) {
  %lengths = alloca [$MAX_RANK x i64]
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %rank
  br i1 %is.more, label %body, label %end
body:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at
  %register = getelementptr i64, ptr %registers, i64 %dim
  %length = load i64, ptr %register
  %length.at = getelementptr i64, ptr %lengths, i64 %i
  store i64 %length, ptr %length.at
  %following = add i64 %i, 1
  br label %test
end:
  %type = call ptr @object.ndarray(ptr %api)
  %count = trunc i64 %rank to i32
  call void @Py_IncRef(ptr %api, ptr %descriptor)
  %array = call ptr @PyArray_NewFromDescr(ptr %api, ptr %type, ptr %descriptor, i32 %count, ptr %lengths,
                                          ptr null, ptr null, i32 0, ptr null)
  ret ptr %array
}

; Return what the caller gets: a new reference, or null if there is no memory for a list.
define internal ptr @returned(ptr %api, ptr %block, ptr %results) {
  %outputs = call ptr @block.outputs(ptr %block)
  %count = call i64 @block.n_outputs(ptr %block)
  %returns = call i64 @block.returns(ptr %block)
  %is.list = icmp eq i64 %returns, $LIST
  br i1 %is.list, label %list, label %one
one:
  %only = call ptr @new_reference(ptr %api, ptr %results, ptr %outputs, i64 0)
  ret ptr %only
list:
  %made = call ptr @PyList_New(ptr %api, i64 %count)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %test, label %end
test:
  %i = phi i64 [ 0, %list ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %result = call ptr @new_reference(ptr %api, ptr %results, ptr %outputs, i64 %i)
  %ignored = call i32 @PyList_SetItem(ptr %api, ptr %made, i64 %i, ptr %result)
  %following = add i64 %i, 1
  br label %test
end:
  ret ptr %made
}

; Return a new reference to the result whose number is at `i` of `numbers`.
define internal ptr @new_reference(ptr %api, ptr %results, ptr %numbers, i64 %i) alwaysinline {
  %number.at = getelementptr i64, ptr %numbers, i64 %i
  %number = load i64, ptr %number.at
  %result.at = getelementptr ptr, ptr %results, i64 %number
  %result = load ptr, ptr %result.at
  call void @Py_IncRef(ptr %api, ptr %result)
  ret ptr %result
}

; Put the new values of shared variables into their storages. No code of Python can run and fail in between.
define internal void @store_updates(ptr %api, ptr %block, ptr %results) {
  %storages = call ptr @block.updated(ptr %block)
  %numbers = call ptr @block.new_values(ptr %block)
  %count = call i64 @block.n_updates(ptr %block)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %storage.at = getelementptr ptr, ptr %storages, i64 %i
  %storage = load ptr, ptr %storage.at
  %value = call ptr @new_reference(ptr %api, ptr %results, ptr %numbers, i64 %i)
  %ignored = call i32 @PyList_SetItem(ptr %api, ptr %storage, i64 0, ptr %value)
  %following = add i64 %i, 1
  br label %test
end:
  ret void
}
"""
"""Defines @make, @returned and @store_updates."""
