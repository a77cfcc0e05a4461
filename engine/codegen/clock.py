"""The processor's counter as LLVM IR text: `@now()` reads it, and `@long()` is how far it counts in a
time that is long, a tenth of a second or so."""

from __future__ import annotations

import platform

_CLOCK = """
define internal i64 @now() alwaysinline {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}
define internal i64 @long() alwaysinline {
  ret i64 268435456
}
declare i64 @llvm.readcyclecounter()
"""
"""The counter of x86-64, 1 to 5 GHz, and what is long of it: 0.05 to 0.3 seconds. On processors without one
LLVM gives 0: no pause."""
_ARM_CLOCK = """
define internal i64 @now() alwaysinline {
  %now = call i64 @llvm.read_volatile_register.i64(metadata !0)
  ret i64 %now
}
define internal i64 @long() alwaysinline {
  %hertz = call i64 @llvm.read_volatile_register.i64(metadata !1)
  %long = lshr i64 %hertz, 3
  ret i64 %long
}
declare i64 @llvm.read_volatile_register.i64(metadata)
!0 = !{!"cntvct_el0"}
!1 = !{!"cntfrq_el0"}
"""


def clock_source() -> str:
    """Return the text for this kind of processor."""
    return _ARM_CLOCK if platform.machine().lower() in ("arm64", "aarch64") else _CLOCK
