"""Errors of lowering, codegen and runtime. Each message says what was being done, to what and what was
found; fields keep the parts."""

from __future__ import annotations


class BackendError(Exception):
    """Base of these errors. Fields: `doing`, `subject`, `found` and `advice`."""

    advice = ""

    def __init__(self, doing: str, subject: str, found: str, advice: str = "") -> None:
        super().__init__(doing, subject, found, advice or self.advice)
        self.doing = doing
        self.subject = subject
        self.found = found
        self.advice = advice or self.advice

    def __str__(self) -> str:
        return f"{self.doing} {self.subject}: {self.found}" + (f"; {self.advice}" if self.advice else "")


class InvalidKernel(BackendError):
    """The description of a kernel is inconsistent: an unknown name, or a dtype that an operation does
    not take."""

    advice = "correct what describes the kernel"


class KernelCompileError(BackendError):
    """The compiler refused a kernel, or its object code needs something that no process may be asked for."""

    advice = "report it with the kernel's printed source"


class KernelFormatError(BackendError):
    """A stored kernel is damaged, cut short or of another format version."""

    advice = "compile the kernel again"


class ForeignTarget(KernelFormatError):
    """A stored kernel is for another triple, or for no CPU level that this machine has."""


class LoadError(BackendError):
    """Linking a kernel failed: a symbol is refused or missing, or the linker reports an error."""

    advice = "compile the kernel again"


class InvalidProgram(BackendError):
    """A program would read outside its registers, or never halt."""

    advice = "compile the function again"


class EntryRefused(BackendError):
    """C cannot run a program; the message says what in it needs Python."""

    advice = "call the function from Python"
