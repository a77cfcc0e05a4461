"""`Changes`: the Feature that knows whether a graph was changed."""

from __future__ import annotations

from engine.graph import Feature, register_feature_callback


class Changes(Feature):
    """Knows whether a variable has taken the place of another since it was attached: `are_made`."""

    def __init__(self) -> None:
        self.are_made = False

    @register_feature_callback
    def on_change_input(self, *change: object) -> None:
        """Remember that there was a change."""
        self.are_made = True
