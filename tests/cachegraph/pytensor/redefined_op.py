"""A process with an Op whose definition the test edits: prints its result for 1."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, get_default_mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic
from pytensor.link.numba.linker import NumbaLinker

from cachegraph.fingerprint import encode
from cachegraph.pytensor.code.numba_linking import StoredLinker
from tests.cachegraph.pytensor.code_process import basis_of_nothing

FACTOR = 2


class Multiplied(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * FACTOR


@basic.register_funcify_default_op_cache_key(Multiplied)
def multiplied(op, node, **kwargs):
    factor = float(FACTOR)

    @basic.numba_njit
    def multiplied(x):
        return x * factor

    return multiplied


x = pt.vector("x")
linker = StoredLinker.like(NumbaLinker(), encode(("redefined", FACTOR)), basis_of_nothing())
function = pytensor.function([x], Multiplied()(x), mode=Mode(linker, get_default_mode().provided_optimizer))
print(function(np.ones(1))[0])
