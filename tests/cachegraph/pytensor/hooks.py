"""What the adapter takes the place of in PyTensor."""

from __future__ import annotations

from typing import Any


def hooked() -> dict[str, Any]:
    """Where -> what is there now."""
    from pytensor.compile.mode import Mode

    return {"Mode.function_maker": Mode.__dict__["function_maker"]}
