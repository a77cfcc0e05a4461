"""The functions that C calls: a density with its gradient, and an expanded point."""

from __future__ import annotations

ENTRIES = """
define internal i64 @density(i64 %dim, ptr %point, ptr %gradient, ptr %density, ptr %user) noinline optnone {
  %own = alloca [2 x i64]
  %context = load ptr, ptr %user
  %due = call i64 @context.dim(ptr %context)
  %fits = icmp eq i64 %dim, %due
  br i1 %fits, label %run, label %refused
run:
  %slot = call ptr @take(ptr %context, ptr %own)
  %state = call ptr @state(ptr %context, ptr %slot)
  %is.run = call i1 @compute(ptr %context, ptr %state, ptr %point, ptr %user)
  br i1 %is.run, label %deliver, label %leave
deliver:
  %of.density = call i64 @deliver(ptr %context, ptr %state, i64 0, ptr %density, i64 1)
  %of.gradient = call i64 @deliver(ptr %context, ptr %state, i64 1, ptr %gradient, i64 %dim)
  %is.density = icmp sge i64 %of.density, 0
  %is.gradient = icmp sge i64 %of.gradient, 0
  %are.delivered = and i1 %is.density, %is.gradient
  br i1 %are.delivered, label %look, label %leave
look:
  %is.finite = icmp eq i64 %of.density, 0
  %is.finite.gradient = icmp eq i64 %of.gradient, 0
  %of.value = select i1 %is.finite, i64 0, i64 $DENSITY_NOT_FINITE
  %found = select i1 %is.finite.gradient, i64 %of.value, i64 $GRADIENT_NOT_FINITE
  br label %leave
leave:
  %status = phi i64 [ $DENSITY_FAILED, %run ], [ $DENSITY_FAILED, %deliver ], [ %found, %look ]
  call void @leave(ptr %context, ptr %slot, ptr %own)
  ret i64 %status
refused:
  ret i64 $REFUSED
}

define internal i64 @expand(i64 %dim, i64 %expanded, ptr %point, ptr %values, ptr %user) noinline optnone {
  %own = alloca [2 x i64]
  %context.at = getelementptr ptr, ptr %user, i64 1
  %context = load ptr, ptr %context.at
  %due = call i64 @context.dim(ptr %context)
  %due.expanded = call i64 @context.expanded(ptr %context)
  %fits.dim = icmp eq i64 %dim, %due
  %fits.expanded = icmp eq i64 %expanded, %due.expanded
  %fits = and i1 %fits.dim, %fits.expanded
  br i1 %fits, label %run, label %refused
run:
  %slot = call ptr @take(ptr %context, ptr %own)
  %state = call ptr @state(ptr %context, ptr %slot)
  %is.run = call i1 @compute(ptr %context, ptr %state, ptr %point, ptr %user)
  br i1 %is.run, label %deliver, label %leave
deliver:
  %of.values = call i64 @deliver(ptr %context, ptr %state, i64 0, ptr %values, i64 %expanded)
  %are.delivered = icmp sge i64 %of.values, 0
  %found = select i1 %are.delivered, i64 0, i64 $EXPANSION_FAILED
  br label %leave
leave:
  %status = phi i64 [ $EXPANSION_FAILED, %run ], [ %found, %deliver ]
  call void @leave(ptr %context, ptr %slot, ptr %own)
  ret i64 %status
refused:
  ret i64 $REFUSED
}

; Copy output `number` to `target`. Return 0; 1 if an element is not finite; -1 if there are not `count`.
define internal i64 @deliver(ptr %context, ptr %state, i64 %number, ptr %target, i64 %count) noinline {
  %outputs = call ptr @context.outputs(ptr %context)
  %place = mul i64 %number, 2
  %record = getelementptr i64, ptr %outputs, i64 %place
  %skipped.at = getelementptr i64, ptr %record, i64 1
  %word = load i64, ptr %record
  %skipped = load i64, ptr %skipped.at
  %array = getelementptr i64, ptr %state, i64 %word
  %all = call i64 @array.elements(ptr %array)
  %found = sub i64 %all, %skipped
  %fits = icmp eq i64 %found, %count
  br i1 %fits, label %copy, label %refused
copy:
  %begin = call ptr @data(ptr %array)
  %source = getelementptr double, ptr %begin, i64 %skipped
  br label %test
test:
  %i = phi i64 [ 0, %copy ], [ %following, %body ]
  %are.finite = phi i1 [ true, %copy ], [ %are.still, %body ]
  %is.more = icmp slt i64 %i, %count
  br i1 %is.more, label %body, label %end
body:
  %source.at = getelementptr double, ptr %source, i64 %i
  %target.at = getelementptr double, ptr %target, i64 %i
  %value = load double, ptr %source.at
  store double %value, ptr %target.at
  %difference = fsub double %value, %value
  %is.finite = fcmp oeq double %difference, 0.0
  %are.still = and i1 %are.finite, %is.finite
  %following = add i64 %i, 1
  br label %test
end:
  %result = select i1 %are.finite, i64 0, i64 1
  ret i64 %result
refused:
  ret i64 -1
}

define internal ptr @data(ptr %array) alwaysinline {
  %at = getelementptr i8, ptr %array, i64 $DATA
  %data = load ptr, ptr %at
  ret ptr %data
}
"""
"""Defines @density and @expand."""
