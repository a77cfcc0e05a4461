"""Features: what watches a `FunctionGraph` while it changes, and gives it more methods."""

from engine.graph.features.destroy import DestroyHandler
from engine.graph.features.full_history import FullHistory
from engine.graph.features.history import History
from engine.graph.features.listeners import NodeFinder, PreserveVariableAttributes, PrintListener
from engine.graph.features.protection import NoOutputFromInplace, Supervisor
from engine.graph.features.protocol import (
    CALLBACKS,
    AlreadyThere,
    Bookkeeper,
    Feature,
    is_revert,
    register_feature_callback,
)
from engine.graph.features.replace_validate import ReplacementDidNotRemoveError, ReplaceValidate, Validator

__all__ = [
    "CALLBACKS",
    "AlreadyThere",
    "Bookkeeper",
    "DestroyHandler",
    "Feature",
    "FullHistory",
    "History",
    "NoOutputFromInplace",
    "NodeFinder",
    "PreserveVariableAttributes",
    "PrintListener",
    "ReplaceValidate",
    "ReplacementDidNotRemoveError",
    "Supervisor",
    "Validator",
    "is_revert",
    "register_feature_callback",
]
