"""Draws: the numbers are those of numpy, SciPy and PyTensor, bit for bit; their lengths are known without drawing.

A row is the arguments of a draw. All rows are one compiled function.
"""

import pickle
import warnings

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import NullGradientError
from engine.random.choosing import PermutationRV
from engine.random.elementwise import ElementwiseRandomVariable
from engine.random.names import DRAWS
from engine.random.op import RandomVariable
from engine.random.size import broadcast_params
from engine.random.type import random_generator_type
from engine.tensor.blockwise import vectorize_graph

pytestmark = pytest.mark.usefixtures("kernels_once")
random = pt.random

V = np.array([0.5, 1.5, 2.5])
M = np.array([[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]])
COV = np.array([[2.0, 0.3], [0.3, 1.0]])
COVS = np.stack([COV, np.eye(2), COV + 1])

ROWS = {
    "uniform": [((), {}), ((V, 4.0), {"size": (2, 3)}), ((-1, 2), {"dtype": "float32", "size": 3})],
    "triangular": [((-1.0, V, 4.0), {})],
    "beta": [((V, 2.0), {}), ((2, 3), {"size": (2, 1)})],
    "normal": [((), {}), ((V, [[1.0], [2.0]]), {}), ((1, 2), {"size": ()}), ((V,), {"size": (0, 3)})],
    "standard_normal": [((), {"size": 3}), ((), {"size": 2, "dtype": "float32"})],
    "halfnormal": [((V, 2.0), {})],
    "lognormal": [((V, 0.5), {})],
    "gamma": [((V,), {"scale": 2.0}), ((1.5,), {"scale": V, "size": (2, 3)})],
    "chisquare": [((V,), {})],
    "rayleigh": [((V,), {}), ((), {"size": 3})],
    "pareto": [((V, 2.0), {})],
    "gumbel": [((V, 2.0), {}), ((0.0,), {"size": (2,)})],
    "exponential": [((), {}), ((V,), {"size": (2, 3)})],
    "weibull": [((V,), {})],
    "logistic": [((V, 2), {}), ((), {"size": 2})],
    "vonmises": [((V, 2.0), {})],
    "multivariate_normal": [
        (([1.0, 2.0], COV), {}),
        ((M, COVS), {}),
        (([1.0, 2.0], COV), {"size": (3, 1), "method": "svd"}),
        ((M, COV), {"method": "eigh"}),
    ],
    "dirichlet": [((V,), {}), ((V,), {"size": (2,)}), ((M,), {"size": (2, 3)})],
    "poisson": [((), {}), ((V,), {})],
    "geometric": [((M,), {})],
    "hypergeometric": [((10, [5, 7], 8), {})],
    "cauchy": [((V, 2.0), {})],
    "halfcauchy": [((V,), {})],
    "invgamma": [((V, 2.0), {})],
    "wald": [((V,), {})],
    "truncexpon": [((V, 1.0, 2.0), {})],
    "t": [((V, 1.0, 2.0), {}), ((3.0,), {"size": (2, 2)})],
    "bernoulli": [((M,), {}), ((0.4,), {})],
    "laplace": [((V, 2.0), {})],
    "binomial": [((10, M), {}), (([3, 4], 0.5), {"size": (2, 2)})],
    "nbinom": [((10, M), {})],
    "negative_binomial": [((3, 0.5), {"size": 4})],
    "betabinom": [((10, V, 2.0), {})],
    "gengamma": [((V, 2.0, 1.5), {}), ((), {})],
    "multinomial": [
        ((7, M[0]), {}),
        (([7, 8, 9], M), {}),
        ((5, M), {"size": (2, 3)}),
        ((5, M[1]), {"size": 2}),
    ],
    "categorical": [((M,), {}), ((M,), {"size": (4, 3)}), ((M[0],), {"size": 5})],
    "integers": [((5,), {"size": 4}), ((-3, [4, 5]), {})],
    "choice": [
        ((5,), {"size": (2, 3)}),
        ((V,), {}),
        ((M,), {"size": 4, "p": V / V.sum()}),
        ((M,), {"size": (2,), "replace": False}),
        ((np.int64(6),), {"size": (2, 2), "replace": False, "p": np.arange(6.0) / 15}),
        ((V,), {"size": (), "replace": False}),
    ],
    "permutation": [((np.int64(5),), {}), ((M,), {}), ((V,), {"size": (2,)})],
}
EVERY = [(name, position) for name, rows in ROWS.items() for position in range(len(rows))]
SEED = 17


def _drawn(package, generator, seed_of):
    return [
        getattr(package, name)(*args, rng=generator(seed_of(number)), return_next_rng=True, **options)
        for number, (name, position) in enumerate(EVERY)
        for args, options in [ROWS[name][position]]
    ]


@pytest.fixture(scope="module")
def expressions():
    return _drawn(random, lambda seed: random.shared_rng(seed=seed), lambda number: SEED + number)


@pytest.fixture(scope="module")
def results(expressions):
    """The numbers of every row and the generators behind them, twice: compiled, and by numpy's backend."""
    wanted = [draws for _, draws in expressions] + [rng for rng, _ in expressions]
    return [engine.function([], wanted, mode=mode)() for mode in ("FAST_RUN", "NUMPY")]


def test_every_draw_has_a_row():
    assert ROWS.keys() == DRAWS
    assert set(random.__all__) - DRAWS == {
        *("ChoiceWithoutReplacement", "PermutationRV", "RandomStream", "RandomVariable"),
        *("default_rng", "random_generator_type", "rng", "shared_rng"),
    }


def test_both_backends_draw_the_same(results):
    for found, due in zip(*results, strict=True):
        if isinstance(found, np.random.Generator):
            assert found.bit_generator.state == due.bit_generator.state
        else:
            assert found.dtype == due.dtype
            assert found.tobytes() == due.tobytes()


def test_types_say_dtypes_ranks_and_lengths(expressions, results):
    for (_, draws), found in zip(expressions, results[0], strict=False):
        assert draws.type.filter(found, strict=True) is found
        assert None not in draws.type.shape


@pytest.fixture(scope="module")
def pytensors():
    """The numbers of every row by PyTensor, and the states of the generators behind them."""
    pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
    import pytensor.tensor.random.basic as theirs

    rngs = [pytensor.shared(np.random.default_rng(SEED + number)) for number in range(len(EVERY))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = _drawn(theirs, lambda number: rngs[number], lambda number: number)
    wanted = [draws for _, draws in drawn] + [rng for rng, _ in drawn]
    return pytensor.function([], wanted, mode=pytensor.compile.mode.Mode("py", None))()


def test_numbers_are_pytensors(results, pytensors):
    assert len(results[0]) == len(pytensors) == 2 * len(EVERY)
    for (name, _), found, due in zip(EVERY, results[0], pytensors, strict=False):
        assert found.dtype == due.dtype, name
        assert found.shape == due.shape, name
        assert found.tobytes() == due.tobytes(), name
    for found, due in zip(results[0][len(EVERY) :], pytensors[len(EVERY) :], strict=True):
        assert found.bit_generator.state == due.bit_generator.state


@pytest.mark.parametrize("name", ["normal", "gamma", "poisson", "dirichlet", "integers"])
def test_numbers_are_numpys(name, results):
    number = EVERY.index((name, 0))
    args, options = ROWS[name][0]
    args = (0, *args) if name == "integers" else args
    due = getattr(np.random.default_rng(SEED + number), name)(*args, **options)
    assert np.array_equal(results[0][number], due)


@pytest.mark.parametrize(
    "name",
    sorted(n for n in DRAWS if isinstance(getattr(random, n), ElementwiseRandomVariable) and n != "invgamma"),
)
def test_parameters_of_one_element_draw_as_numpy_draws_of_them(name):
    op, values = getattr(random, name), [0.3, 0.7, 2.5]
    params = [5, 0.3] if name == "binomial" else values[: len(op.inputs_sig)]
    drawn = engine.function([], op(*params, size=(2, 3), rng=random.shared_rng(seed=1)))()
    arrays = [np.full((1, 1), param) for param in params]
    assert drawn.tobytes() == op.rng_fn(np.random.default_rng(1), *arrays, size=(2, 3)).tobytes()
    due = getattr(np.random.default_rng(1), name)(*arrays, size=(2, 3))
    assert due.tobytes() == drawn.tobytes()


def test_a_batch_of_permutations_of_integers():
    found = random.permutation(4, size=(2, 3), rng=random.shared_rng(seed=1)).eval()
    rng = np.random.default_rng(1)
    assert found.tolist() == [[rng.permutation(4).tolist() for _ in range(3)] for _ in range(2)]
    assert random.permutation(4, size=(0, 3), rng=random.shared_rng(seed=1)).eval().shape == (0, 3, 4)
    with pytest.raises(ValueError, match="the numbers must be equal"):
        PermutationRV(signature="()->(x)", dtype="int64")([2, 3]).eval()


# Lengths


def test_lengths_are_computed_without_drawing():
    x, n = pt.vector("x"), pt.lscalar("n")
    rng = random.rng("rng")
    drawn = [
        random.normal(x, rng=rng),
        random.normal(x[:, None], x, rng=rng),
        random.normal(size=(n, 2), rng=rng),
        random.multivariate_normal(x, np.eye(3), size=n[None], rng=rng),
        random.permutation(n, rng=rng),
        random.permutation(x, rng=rng),
        random.choice(x, size=(n, 1), replace=False, rng=rng),
    ]
    lengths = [length for draws in drawn for length in draws.shape]
    f = engine.function([rng, x, n], lengths, on_unused_input="ignore")
    assert not any(isinstance(node.op, RandomVariable) for node in f.maker.fgraph.apply_nodes)
    assert [int(v) for v in f(np.random.default_rng(1), np.zeros(3), 2)] == [3, 3, 3, 2, 2, 2, 3, 2, 3, 2, 1]
    g = engine.function([rng, x, n], drawn)
    shapes = [found.shape for found in g(np.random.default_rng(1), np.zeros(3), 2)]
    assert shapes == [(3,), (3, 3), (2, 2), (2, 3), (2,), (3,), (2, 1)]


def test_static_lengths_follow_from_size_and_parameters():
    x = pt.tensor("x", shape=(None, 1, 4), dtype="float64")
    row = pt.tensor("row", shape=(3, 1), dtype="float64")
    assert random.normal(x, row).type.shape == (None, 3, 4)
    assert random.normal(x, size=(2, pt.lscalar(), 4)).type.shape == (2, None, 4)
    assert random.normal(size=pt.as_tensor_variable([2, 3]).astype("int32") + 1).type.shape == (3, 4)
    assert random.dirichlet(x).type.shape == (None, 1, 4)
    with pytest.raises(ValueError, match=r"lengths \[2, 3\] of parameters"):
        random.normal(np.zeros(3), np.ones(2))
    with pytest.raises(ValueError, match="Size length is incompatible"):
        random.normal(x, size=(3,))


def test_only_static_lengths_of_one_broadcast():
    x, y = pt.vector(), pt.vector()
    rng = random.rng()
    draws = random.normal(x, y, rng=rng)
    for wanted in (draws, draws.shape):
        f = engine.function([rng, x, y], wanted, on_unused_input="ignore")
        assert f(np.random.default_rng(1), np.zeros(2), np.ones(2)).shape in ((2,), (1,))
    g = engine.function([rng, x, y], draws)
    with pytest.raises(ValueError, match="only a static length of 1 broadcasts"):
        g(np.random.default_rng(1), np.zeros(1), np.ones(2))


def test_a_batch_of_parameters_is_drawn_at_once():
    x, scale = pt.vector("x"), pt.scalar("scale")
    rows = pt.matrix("rows")
    rng = random.rng("rng")
    free, sized = random.normal(x, scale, rng=rng), random.normal(scale=scale, size=(2,), rng=rng)
    f = engine.function([rng, rows], vectorize_graph([free, sized], {x: rows, scale: rows[:, 0]}))
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = f(np.random.default_rng(1), values)
    assert np.array_equal(found[0], np.random.default_rng(1).normal(values, values[:, :1]))
    assert np.array_equal(found[1], np.random.default_rng(1).normal(0.0, values[:, :1], (3, 2)))
    other = vectorize_graph(sized, {sized.owner.inputs[1]: pt.constant([4, 2])})
    assert other.type.shape == (4, 2)


@pytest.mark.parametrize("is_symbolic", [False, True])
def test_parameters_are_broadcast_to_one_batch(is_symbolic):
    mean, cov = np.array([[0.0], [10.0], [100.0]]), np.array([[2.0]])
    if is_symbolic:
        inputs = pt.tensor("mean", shape=(None, 1), dtype="float64"), pt.matrix("cov")
        found = engine.function([*inputs], broadcast_params(inputs, [1, 2]))(mean, cov)
    else:
        found = broadcast_params([mean, cov], [1, 2])
    assert np.array_equal(found[0], mean)
    assert np.array_equal(found[1], np.full((3, 1, 1), 2.0))


# What is refused, and what has no derivative


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: random.normal(0.0, -1.0), "scale < 0"),
        (lambda: random.poisson(-1.0), "lam < 0"),
        (lambda: random.integers(3, 3), "low >= high"),
        (lambda: random.normal(size=(-1,)), "negative"),
        (lambda: random.multivariate_normal(M, COV, size=(1,)), "operand"),
        (lambda: random.choice([1, 2], p=[[0.1, 0.9], [0.3, 0.7]]), "must be a vector"),
        (lambda: random.choice(3, size=2, p=[0.5, 0.5]), "elements"),
        (lambda: random.choice(2, size=3, replace=False), "larger sample"),
    ],
)
def test_wrong_parameters_raise_numpys_errors(draw, message):
    with pytest.raises(ValueError, match=message):
        engine.function([], draw())()


@pytest.mark.parametrize(
    ("size", "error"), [({1, 2}, TypeError), (1.5, TypeError), ("ab", TypeError), ([0.5], TypeError)]
)
def test_a_size_is_made_of_integers(size, error):
    with pytest.raises(error):
        random.normal(size=size)


def test_a_draw_refuses_what_is_no_generator():
    for rng in (1, np.random.default_rng(1), pt.vector()):
        with pytest.raises(TypeError, match="Drawing from"):
            random.normal(rng=rng)
    with pytest.raises(ValueError, match="Cannot change the dtype of a poisson RV from int64 to float32"):
        random.poisson(dtype="float32")
    with pytest.raises(ValueError, match="takes 2 parameters, 3 were given"):
        random.normal.make_node(None, None, 1, 2, 3)
    with pytest.raises(ValueError, match="Unknown method lu"):
        random.multivariate_normal([0.0], [[1.0]], method="lu")


def test_numbers_have_no_derivative_by_parameters():
    x, y = pt.scalar("x"), pt.scalar("y")
    draws = random.normal(x, rng=random.shared_rng(seed=1))
    slope = engine.function([x, y], engine.grad(draws * y, y), on_unused_input="ignore")(1.0, 2.0)
    assert float(slope) == np.random.default_rng(1).normal(1.0)
    with pytest.raises(NullGradientError, match="normal_rv"):
        engine.grad(draws * y, x)


@pytest.mark.parametrize(
    "cost",
    [
        lambda p: p * random.poisson(p),
        lambda p: pt.switch(random.bernoulli(p), p, 2 * p),
        lambda p: engine.scan(
            lambda p: p + random.poisson(p), non_sequences=p, n_steps=3, return_updates=False
        ).sum(),
    ],
)
def test_a_gradient_by_a_parameter_of_draws_of_whole_numbers_is_refused(cost):
    p = pt.dscalar("p")
    with pytest.raises(NullGradientError, match="draws of whole numbers have none by their parameters"):
        engine.grad(cost(p), p)


@pytest.mark.parametrize(
    ("cost", "slope"),
    [
        (lambda p: p * engine.gradient.disconnected_grad(random.poisson(p * 0)), 0),
        (lambda p: p * random.poisson(0.0), 0),
        (lambda p: pt.stack([p, 3 * p])[random.bernoulli(p * 0 + 1)], 3),
    ],
)
def test_draws_that_no_parameter_asked_for_changes_are_constants(cost, slope):
    p = pt.dscalar("p")
    assert engine.function([p], engine.grad(cost(p), p))(2.0) == slope


# Draws of one's own, and ways to name a draw


class Doubled(RandomVariable):
    name = "doubled"
    signature = "(n)->(n)"
    dtype = "floatX"

    def rng_fn(self, rng, x, size):
        return 2 * rng.normal(x, size=None if size is None else (*size, *x.shape[-1:]))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_users_draw_leaves_the_generator_and_is_cached(mode):
    rng = random.shared_rng(seed=1)
    next_rng, draws = Doubled()(V, rng=rng, return_next_rng=True)
    f = engine.function([], draws, updates={rng: next_rng}, mode=mode)
    generator = np.random.default_rng(1)
    for _ in range(2):
        assert np.array_equal(f(), 2 * generator.normal(V))
    if mode == "FAST_RUN":
        assert engine.function([], draws, updates={rng: next_rng}).cache_info.outcome == "hit"


def test_an_op_says_its_signature_and_makes_nodes():
    node = random.normal.make_node(random.rng("g"), None, 1.0, V)
    assert str(node.op) == 'normal_rv{"(),()->()"}'
    assert (node.op.rng_param(node), node.op.dist_params(node)) == (node.inputs[0], node.inputs[2:])
    assert node.op.size_param(node).value is None
    assert node.op.batch_ndim(node) == 1
    assert node.op.update(node) == {node.inputs[0]: node.outputs[0]}
    with pytest.raises(ValueError, match="it must be like"):
        RandomVariable("normal", signature="()")
    with pytest.raises(ValueError, match="signature must be provided"):
        RandomVariable("normal")
    with pytest.warns(FutureWarning, match="Provide signature"):
        old = RandomVariable("normal", 0, [0, 0], "float64")
    assert (old.signature, old.inputs_sig) == ("(),()->()", ((), ()))


def test_pickled_expressions_draw_the_same(expressions):
    draws = [draws for _, draws in expressions if draws.owner.op.__class__.__name__ == "NormalRV"]
    copies = pickle.loads(pickle.dumps(draws))
    for one, other in zip(engine.function([], draws)(), engine.function([], copies)(), strict=True):
        assert one.tobytes() == other.tobytes()


def test_rates_are_deprecated():
    with pytest.warns(FutureWarning, match="use scale instead"):
        draws = random.gamma(2.0, 4.0, rng=random.shared_rng(seed=1))
    assert float(draws.eval()) == np.random.default_rng(1).gamma(2.0, 0.25)
    for arguments in ({}, {"rate": 1.0, "scale": 1.0}):
        with pytest.raises(ValueError, match="specify"):
            random.gamma(1.0, **arguments)


def test_a_generator_is_made_of_a_seed():
    seed = pt.lscalar()
    f = engine.function([seed], random.default_rng(seed))
    assert f(3).bit_generator.state == np.random.default_rng(3).bit_generator.state
    fresh = engine.function([], random.default_rng())
    assert fresh().bit_generator.state != fresh().bit_generator.state


def test_the_mode_verify_finds_no_fault_in_what_varies(monkeypatch):
    rng = random_generator_type.make_constant(np.random.default_rng(1))
    for wanted in (random.default_rng(), random.normal(size=3, rng=rng)):
        engine.function([], wanted)
        monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
        assert engine.function([], wanted).cache_info.outcome == "hit"
        monkeypatch.delenv("CACHEGRAPH_MODE")
