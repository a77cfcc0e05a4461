"""Batches: Ops at each place of leading axes, graphs made for batches, and their gradients."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import OpFromGraph, verify_grad
from engine.graph import Apply, Op, toposort, vectorize_graph, vectorize_node
from engine.graph import replace as names_of_replace
from engine.graph.absent_gradients import DisconnectedType
from engine.graph.types import Type
from engine.rewriting import rewrite_graph
from engine.tensor import Blockwise
from engine.tensor.linalg import Cholesky, Solve
from engine.tensor.type import tensor_type

RANDOM = np.random.default_rng(11)
FACTORS = RANDOM.normal(size=(2, 3, 4, 4))
POSITIVE = FACTORS @ np.swapaxes(FACTORS, -1, -2) + np.eye(4)
VECTORS = RANDOM.normal(size=(3, 4))
X, V = RANDOM.normal(size=(5, 4, 3)), RANDOM.normal(size=(5, 3))


class Ends(Op):
    """The first elements, as many as the second input has, and the last ones of the first input reversed."""

    __props__ = ()

    def make_node(self, x, y):
        x, y = pt.as_tensor_variable(x), pt.as_tensor_variable(y)
        return Apply(self, [x.astype("float64"), y], [tensor_type("float64", (None,)).make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][: len(inputs[1])].copy()

    def infer_shape(self, fgraph, node, input_shapes):
        return [(input_shapes[1][0],)]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_ops_are_applied_at_each_place_of_a_batch(mode, kernels_once):
    a, b = pt.dtensor4("a"), pt.dmatrix("b")
    outputs = [
        pt.linalg.cholesky(a),
        *pt.linalg.slogdet(a),
        pt.linalg.solve(a, b, b_ndim=1),
        pt.linalg.matrix_inverse(a),
        a @ a,
        a @ b.T,
        pt.linalg.matrix_power(a, 3),
    ]
    function = engine.function([a, b], outputs, mode=mode)
    expected = [
        np.linalg.cholesky(POSITIVE),
        *np.linalg.slogdet(POSITIVE),
        np.linalg.solve(POSITIVE, np.broadcast_to(VECTORS, (2, 3, 4))[..., None])[..., 0],
        np.linalg.inv(POSITIVE),
        POSITIVE @ POSITIVE,
        POSITIVE @ VECTORS.T,
        np.linalg.matrix_power(POSITIVE, 3),
    ]
    for found, other in zip(function(POSITIVE, VECTORS), expected, strict=True):
        np.testing.assert_allclose(found, other, 1e-8)
    empty = function(POSITIVE[:0], VECTORS)
    assert [found.shape for found in empty] == [(0, *other.shape[1:]) for other in expected]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_batches_broadcast_only_axes_of_static_length_1(mode, kernels_once):
    a, b, one = pt.dtensor4("a"), pt.dtensor4("b"), pt.tensor("one", "float64", (2, 1, 4, 4))
    product = engine.function([a, b], a @ b, mode=mode)
    np.testing.assert_allclose(product(POSITIVE, FACTORS), POSITIVE @ FACTORS)
    for other in (POSITIVE[:1], POSITIVE[:, :1], POSITIVE.reshape(3, 2, 4, 4)):
        with pytest.raises(ValueError, match=r"length|fit|dim"):
            product(POSITIVE, other)
    broadcast = engine.function([a, one], a @ one, mode=mode)
    np.testing.assert_allclose(broadcast(POSITIVE, FACTORS[:, :1]), POSITIVE @ FACTORS[:, :1])


def test_gradients_of_batches_are_those_of_finite_differences():
    for function, arguments in (
        (lambda a: pt.linalg.cholesky(a @ a.mT + pt.eye(4)), [FACTORS]),
        (lambda a, b: pt.linalg.solve(a, b, b_ndim=1), [POSITIVE[0], VECTORS[0]]),
        (lambda a, b: pt.linalg.solve(a, b[:, None], b_ndim=1), [POSITIVE, VECTORS[:2]]),
        (lambda a, b: a @ b, [POSITIVE[0], VECTORS.T]),
    ):
        verify_grad(function, arguments, n_tests=1)


def test_gradients_of_batches_are_compiled(kernels_once):
    a = pt.dtensor3("a")
    cost = (pt.linalg.cholesky(a) ** 3).sum() + pt.linalg.det(a).sum() + pt.linalg.eigvalsh(a).prod()
    found, expected = (
        engine.function([a], engine.grad(cost, a), mode=mode)(POSITIVE[0]) for mode in ("FAST_RUN", "NUMPY")
    )
    np.testing.assert_allclose(found, expected, 1e-9)


def core_results(x, v):
    """Return tensors, one or more for each Op that has a rule for batches of its own."""
    return [
        *(
            x @ v,
            v @ v,
            v @ x.T,
            pt.exp(x) * v,
            x.T,
            x[0],
            x[1:, ::2],
            x[-1, 0],
            x.reshape((2, -1)),
            x.flatten(),
        ),
        *(
            x.sum(0),
            x.max(1),
            pt.prod(x),
            pt.all(x > 0),
            x.mean(),
            pt.cumsum(x, 0),
            pt.argmax(x, 1),
            pt.sort(x, 0),
        ),
        *(pt.softmax(x, axis=-1), pt.log_softmax(x, axis=0), pt.logsumexp(x, axis=0), pt.linalg.svd(x)[1]),
        *(pt.stack([v[0], v[1]]), pt.concatenate([x, x * 2], 1), pt.concatenate([x, pt.ones((1, 3))], 0)),
        *(x.shape[0] * v, pt.alloc(v, 2, 3), x[[0, 2]], x[:, v.argsort()], pt.arange(3) * v, pt.tril(x)),
        *(x[1:3].set(v), x[0].inc(1.0), pt.zeros((4, 3))[1].set(v), x[pt.argsort(x[:, 0])], pt.diag(v)),
        OpFromGraph([x, v], [x * v])(x, v),
    ]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("which", ["both", "matrix", "vector"])
def test_a_graph_made_for_batches_computes_each_place(which, mode, kernels_once):
    x, v = pt.tensor("x", "float64", (4, 3)), pt.tensor("v", "float64", (3,))
    several_x, several_v = pt.tensor("X", "float64", (None, 4, 3)), pt.tensor("V", "float64", (None, 3))
    outputs = core_results(x, v)
    replace = {
        "both": {x: several_x, v: several_v},
        "matrix": {x: several_x},
        "vector": {v: several_v},
    }[which]
    xs, vs = (X, V) if which == "both" else (X, V[0]) if which == "matrix" else (X[0], V)
    inputs = [replace.get(x, x), replace.get(v, v)]
    found = engine.function(inputs, vectorize_graph(outputs, replace), mode=mode)(xs, vs)
    core = engine.function([x, v], outputs, mode="NUMPY")
    pairs = zip(np.broadcast_to(xs, X.shape), np.broadcast_to(vs, V.shape), strict=True)
    for number, (result, others) in enumerate(
        zip(found, zip(*[core(*p) for p in pairs], strict=True), strict=True)
    ):
        # What depends on no batch is there once.
        expected = np.stack(others) if result.ndim > others[0].ndim else others[0]
        np.testing.assert_allclose(result, expected, 1e-10, err_msg=str(outputs[number].owner))


def test_graphs_for_batches_keep_replacements_apart_and_batches_of_batches_are_one():
    x, xs = pt.dmatrix("x"), pt.dtensor3("xs")
    found = vectorize_graph(Cholesky()(x), {x: xs})
    assert found.owner.op == Blockwise(Cholesky())
    again = vectorize_graph(found, {xs: pt.dtensor4()})
    assert again.owner.op is found.owner.op
    assert names_of_replace.vectorize_graph is vectorize_graph
    assert vectorize_node(Solve(b_ndim=2)(x, x).owner, x, x)[0].owner.op == Solve(b_ndim=2)
    part = x[0]
    assert vectorize_graph([part + 1, part], {part: x})[1] is x


def test_functions_of_vectors_become_functions_of_batches():
    x = pt.dmatrix("x")
    first, last = pt.vectorize(lambda v: (v[0], v[-1]), "(n)->(),()")(x)
    total = pt.vectorize(lambda v: pt.exp(v) / pt.exp(v).sum(), "(n)->(n)")(x)
    square = pt.vectorize(lambda number: number**2)(x)
    found = engine.function([x], [first, last, total, square], mode="NUMPY")(V)
    exponentials = np.exp(V) / np.exp(V).sum(1, keepdims=True)
    for one, expected in zip(found, (V[:, 0], V[:, -1], exponentials, V**2), strict=True):
        np.testing.assert_allclose(one, expected)
    for made, error, match in (
        (lambda: pt.vectorize(pt.exp, "(n)->(n)")(x, x), ValueError, "Number of inputs"),
        (lambda: pt.vectorize(pt.exp, "(n)->(n),(n)")(x), ValueError, "Number of outputs"),
        (lambda: pt.vectorize(pt.exp, "(n,m,k)->()")(x), ValueError, "less dimensions"),
        (lambda: pt.vectorize(pt.exp)(V), TypeError, "must be TensorVariable"),
        (lambda: pt.vectorize(lambda v: None)(x), ValueError, "no outputs"),
        (lambda: vectorize_graph(x, {x: V}), ValueError, "are not Variables"),
    ):
        with pytest.raises(error, match=match):
            made()


@pytest.mark.parametrize(
    ("made", "signature", "used"),
    [
        (lambda v, w: v.shape, "(n),()->(1)", "v"),
        (lambda v, w: v.shape[0], "(n),()->()", "v"),
        (lambda v, w: pt.zeros(v.shape), "(n),()->(n)", "v"),
        (lambda v, w: pt.arange(v.shape[0]), "(n),()->(n)", "v"),
        (lambda v, w: pt.zeros(v.shape).sum() + 1, "(n),()->()", "v"),
        (lambda v, w: v.size * w, "(n),()->()", "vw"),
        (lambda v, w: v[0] + w, "(n),()->()", "vw"),
        (lambda v, w: w, "(n),()->()", "w"),
        (lambda v, w: pt.constant(2.0), "(n),()->()", ""),
    ],
)
@pytest.mark.parametrize(
    "shapes", [((5, 3), (5,)), ((2, 1, 3), (4,)), ((3,), (4,)), ((1, 3), (2, 1)), ((2, 3), ())]
)
def test_a_batch_of_which_only_lengths_are_used_has_its_places(made, signature, used, shapes):
    arguments = [pt.tensor(shape=[1 if n == 1 else None for n in shape]) for shape in shapes]
    found = pt.vectorize(made, signature)(*arguments)
    values = [np.arange(float(np.prod(shape))).reshape(shape) for shape in shapes]
    result = engine.function(arguments, found, mode="NUMPY", on_unused_input="ignore")(*values)
    core = [pt.dvector(), pt.dscalar()]
    at_each = engine.function(core, made(*core), mode="NUMPY", on_unused_input="ignore")
    expected = np.vectorize(at_each, signature=signature)(*values)
    np.testing.assert_array_equal(np.broadcast_to(result, expected.shape), expected)
    batches = {"v": shapes[0][:-1], "w": shapes[1]}
    batch = np.broadcast_shapes(*(batches[name] for name in used))
    assert result.shape[: len(batch)] == batch
    assert result.ndim == len(batch) + signature.endswith(("(n)", "(1)"))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_ops_of_users_are_applied_to_batches_and_their_lengths_are_known_before(mode, kernels_once):
    x, y = pt.lmatrix("x"), pt.tensor("y", "float64", (1, None))
    found = Blockwise(Ends(), "(m),(n)->(k)")(x, y)
    assert found.type.dtype == "float64"
    function = engine.function([x, y], [found, found.shape[1]], mode=mode)
    result, length = function(np.arange(12).reshape(3, 4), np.zeros((1, 2)))
    np.testing.assert_array_equal(result, np.arange(12.0).reshape(3, 4)[:, :2])
    assert length == 2


def test_a_batch_of_which_only_the_shape_is_used_is_not_computed(kernels_once):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")

    class Never(Ends):
        def perform(self, node, inputs, output_storage):
            raise AssertionError("The Op ran")

    shape = Blockwise(Never(), "(m),(n)->(k)")(x, y).shape
    assert list(engine.function([x, y], shape)(V, V[:, :2])) == [5, 2]

    class Newer(Never):
        def infer_shape(self, node, input_shapes):
            return [input_shapes[1]]

    newer = Blockwise(Newer(), "(m),(n)->(k)")(x, y).shape
    assert list(engine.function([x, y], newer)(V, V[:, :2])) == [5, 2]
    fixed = Blockwise(Never(), "(m),(n)->(7)")(x, y).shape[1]
    assert engine.function([x, y], fixed, on_unused_input="ignore")(V, V) == 7


def test_gradients_of_users_are_those_of_each_place():
    class Halves(Op):
        gufunc_signature = "(n)->(n),(n)"
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type.make_variable(), x.type.make_variable()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0], output_storage[1][0] = inputs[0] / 2, inputs[0] / 2

    class Older(Halves):
        def L_op(self, inputs, outputs, output_grads):
            assert isinstance(output_grads[1].type, DisconnectedType)
            return [output_grads[0] / 2]

    class Newer(Halves):
        def pullback(self, inputs, outputs, cotangents):
            assert isinstance(cotangents[1].type, DisconnectedType)
            return [cotangents[0] / 2]

    x = pt.dmatrix("x")
    for op in (Older(), Newer()):
        gradient = engine.grad((Blockwise(op)(x)[0] ** 2).sum(), x)
        np.testing.assert_allclose(engine.function([x], gradient, mode="NUMPY")(V), V / 2)


def test_what_is_no_batch_is_refused():
    x = pt.dtensor3("x")
    for made, error, match in (
        (lambda: Blockwise(Ends()), ValueError, "Signature not provided"),
        (lambda: Blockwise(Blockwise(Cholesky())), TypeError, "one already"),
        (lambda: Blockwise(Cholesky())(pt.dvector()), ValueError, "insufficient core dimensions"),
        (lambda: Blockwise(Cholesky())(x, x), ValueError, "1 inputs, 2 were given"),
        (lambda: Blockwise(Cholesky(), "(m,m)->(m)")(x), ValueError, "outputs of"),
        (
            lambda: pt.tensor(None, "float64", (2, 3, 3)) @ pt.tensor(None, "float64", (3, 3, 3)),
            ValueError,
            "Incompatible Blockwise batch",
        ),
        (lambda: pt.matmul(x, 1.0), ValueError, "cannot be scalar"),
    ):
        with pytest.raises(error, match=match):
            made()


def test_only_tensors_have_batches():
    class Other(Type):
        __props__ = ()

        def filter(self, value, strict=False, allow_downcast=None):
            return value

    class Wrapped(Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [Other().make_variable()])

    x = pt.dvector("x")
    with pytest.raises(NotImplementedError, match="Cannot vectorize node"):
        vectorize_graph(Wrapped()(x), {x: pt.dmatrix()})


def test_equal_batches_are_computed_once():
    x = pt.dtensor3("x")
    assert Blockwise(Cholesky()) == Blockwise(Cholesky())
    assert Blockwise(Cholesky(lower=False)) != Blockwise(Cholesky())
    first, second = pt.linalg.cholesky(x), pt.linalg.cholesky(x)
    graph = engine.graph.FrozenFunctionGraph.from_io([x], [first, second])
    assert len(list(toposort(graph.outputs))) == 1


def test_a_blockwise_without_a_batch_and_one_of_an_elementwise_op_are_rewritten():
    x, y = pt.dmatrix("x"), pt.tensor3("y", dtype="float64")
    single = Blockwise(pt.linalg.MatrixPinv())(x)
    elementwise = Blockwise(pt.exp(pt.dscalar()).owner.op, "()->()")(y)
    found = rewrite_graph([single, elementwise])
    assert [type(variable.owner.op).__name__ for variable in found] == ["MatrixPinv", "Elemwise"]
    assert isinstance(rewrite_graph(Blockwise(pt.linalg.MatrixPinv())(y)).owner.op, Blockwise)
