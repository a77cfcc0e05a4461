"""Features: objects that watch a `FunctionGraph` while it changes and give it more methods."""

from engine.graph.feature import (
    CALLBACKS,
    AlreadyThere,
    Feature,
    is_revert,
    register_feature_callback,
)
from engine.graph.features.destroy import DestroyHandler, NoOutputFromInplace, Supervisor
from engine.graph.features.full_history import FullHistory
from engine.graph.features.listeners import (
    Bookkeeper,
    NodeFinder,
    PreserveVariableAttributes,
    PrintListener,
)
from engine.graph.features.replace_validate import (
    History,
    ReplacementDidNotRemoveError,
    ReplaceValidate,
    Validator,
)

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
