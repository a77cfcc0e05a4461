"""Numbers as arguments of a fast call."""

from __future__ import annotations

NUMBERS = """
; Write a number into `array`, which has rank 0 and the dtype of the kind. Return false if it is not a
; number that this dtype takes as it is: an int between -limit and limit, a float, or a scalar of numpy's
; type `own`.
define internal i1 @take_number(ptr %api, i64 %kind, i64 %limit, ptr %own, ptr %number, ptr %array) {
  %overflow.at = alloca i32
  %type = call ptr @type(ptr %number)
  %int.type = call ptr @object.int(ptr %api)
  %float.type = call ptr @object.float(ptr %api)
  %is.int = icmp eq ptr %type, %int.type
  %is.float = icmp eq ptr %type, %float.type
  %is.own = icmp eq ptr %type, %own
  %is.whole = or i1 %is.int, %is.own
  %is.real = or i1 %is.float, %is.own
  switch i64 %kind, label %refused [
    i64 $FLOAT64, label %to.float
    i64 $FLOAT32, label %to.float
    i64 $INT64, label %to.int
    i64 $INT32, label %to.int
  ]
to.float:
  br i1 %is.real, label %float, label %int.to.float
int.to.float:
  br i1 %is.int, label %int, label %refused
to.int:
  br i1 %is.whole, label %int, label %refused
float:
  %float.value = call double @PyFloat_AsDouble(ptr %api, ptr %number)
  br label %store.float
int:
  %int.value = call i64 @PyLong_AsLongLongAndOverflow(ptr %api, ptr %number, ptr %overflow.at)
  %overflow = load i32, ptr %overflow.at
  %least = sub i64 0, %limit
  %is.held = icmp eq i32 %overflow, 0
  %is.below = icmp sle i64 %int.value, %limit
  %is.above = icmp sge i64 %int.value, %least
  %is.between = and i1 %is.below, %is.above
  %fits = and i1 %is.held, %is.between
  br i1 %fits, label %exact, label %refused
exact:
  %int.as.float = sitofp i64 %int.value to double
  %int.as.half = trunc i64 %int.value to i32
  %data = call ptr @data(ptr %array)
  switch i64 %kind, label %store.float [
    i64 $INT64, label %store.int64
    i64 $INT32, label %store.int32
  ]
store.float:
  %value = phi double [ %float.value, %float ], [ %int.as.float, %exact ]
  %value.as.half = fptrunc double %value to float
  %data.of.float = call ptr @data(ptr %array)
  %is.wide = icmp eq i64 %kind, $FLOAT64
  br i1 %is.wide, label %store.float64, label %store.float32
store.float64:
  store double %value, ptr %data.of.float
  ret i1 true
store.float32:
  store float %value.as.half, ptr %data.of.float
  ret i1 true
store.int64:
  store i64 %int.value, ptr %data
  ret i1 true
store.int32:
  store i32 %int.as.half, ptr %data
  ret i1 true
refused:
  ret i1 false
}
"""
"""Defines @take_number. It takes what TensorType.filter takes, with the same result, and refuses the rest."""
