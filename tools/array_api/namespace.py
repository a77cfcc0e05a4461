"""The functions of the standard on symbolic tensors, by their names."""

from __future__ import annotations

import arrangement
import creation
import elementwise
import products

BUILDERS = {
    **creation.FUNCTIONS,
    **elementwise.FUNCTIONS,
    **arrangement.FUNCTIONS,
    **products.FUNCTIONS,
}
