"""The end of a fast call that Python finishes, and how references are given up."""

from __future__ import annotations

LEAVING = """
; Give up the references to the results, and to the values of shared variables.
define internal void @release_all(ptr %api, ptr %block, ptr %items, ptr %results) {
  %n.results = call i64 @block.n_results(ptr %block)
  %n.arguments = call i64 @block.n_arguments(ptr %block)
  %n.shared = call i64 @block.n_shared(ptr %block)
  %shared = getelementptr ptr, ptr %items, i64 %n.arguments
  call void @release(ptr %api, ptr %results, i64 %n.results)
  call void @release(ptr %api, ptr %shared, i64 %n.shared)
  ret void
}

define internal void @release(ptr %api, ptr %objects, i64 %count) {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  store ptr null, ptr %at
  call void @Py_DecRef(ptr %api, ptr %object)
  %following = add i64 %i, 1
  br label %test
end:
  ret void
}

; Have Python finish the call: resume(state, status, results, given, items). This takes the reference to
; the state.
define internal ptr @leave(ptr %api, ptr %block, ptr %state, i64 %status,
                           ptr %items, ptr %given, i64 %n.given, ptr %results) {
  %arguments = alloca [5 x ptr]
  %number.at = getelementptr ptr, ptr %arguments, i64 1
  %results.at = getelementptr ptr, ptr %arguments, i64 2
  %given.at = getelementptr ptr, ptr %arguments, i64 3
  %items.at = getelementptr ptr, ptr %arguments, i64 4
  %n.results = call i64 @block.n_results(ptr %block)
  %n.items = call i64 @n_items(ptr %block)
  call void @set_ticks(ptr %block, i64 -1)
  %number = call ptr @PyLong_FromLongLong(ptr %api, i64 %status)
  %results.list = call ptr @listed(ptr %api, ptr %results, i64 %n.results)
  %given.list = call ptr @listed(ptr %api, ptr %given, i64 %n.given)
  %items.list = call ptr @listed(ptr %api, ptr %items, i64 %n.items)
  call void @release_all(ptr %api, ptr %block, ptr %items, ptr %results)
  store ptr %state, ptr %arguments
  store ptr %number, ptr %number.at
  store ptr %results.list, ptr %results.at
  store ptr %given.list, ptr %given.at
  store ptr %items.list, ptr %items.at
  %is.number = icmp ne ptr %number, null
  %are.results = icmp ne ptr %results.list, null
  %are.given = icmp ne ptr %given.list, null
  %are.items = icmp ne ptr %items.list, null
  %some = and i1 %is.number, %are.results
  %others = and i1 %are.given, %are.items
  %all = and i1 %some, %others
  br i1 %all, label %call, label %end
call:
  %resume = call ptr @block.resume(ptr %block)
  %value = call ptr @PyObject_Vectorcall(ptr %api, ptr %resume, ptr %arguments, i64 5, ptr null)
  br label %end
end:
  %result = phi ptr [ %value, %call ], [ null, %0 ]
  call void @release(ptr %api, ptr %arguments, i64 5)
  ret ptr %result
}

; Return a list of the objects, None where there is none; null if there is no memory for it.
define internal ptr @listed(ptr %api, ptr %objects, i64 %count) {
  %list = call ptr @PyList_New(ptr %api, i64 %count)
  %none = call ptr @object.None(ptr %api)
  %is.made = icmp ne ptr %list, null
  br i1 %is.made, label %test, label %end
test:
  %i = phi i64 [ 0, %0 ], [ %following, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %found = load ptr, ptr %at
  %is.there = icmp ne ptr %found, null
  %object = select i1 %is.there, ptr %found, ptr %none
  call void @Py_IncRef(ptr %api, ptr %object)
  %ignored = call i32 @PyList_SetItem(ptr %api, ptr %list, i64 %i, ptr %object)
  %following = add i64 %i, 1
  br label %test
end:
  ret ptr %list
}
"""
"""Defines @leave, and @release_all."""
