"""Inputs and outputs of functions with options: names, values, conversions; and modes by PyTensor's names."""

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import In, Mode, Out, function
from engine.compiling.mode import get_default_mode, get_mode
from engine.shared_variables import Container

x, y, z = pt.dscalar("x"), pt.dscalar("y"), pt.dscalar()


def reference(inputs, outputs, **options):
    return function(inputs, outputs, mode="NUMPY", **options)


@pytest.mark.parametrize("mode", ["NUMPY", "FAST_RUN"])
def test_an_input_with_a_value_may_be_left_out(mode):
    f = function([x, In(y, value=2.0), In(z, value=30.0, name="w")], x + y * z, mode=mode)
    assert f(1.0) == 61.0
    assert f(1.0, 3.0) == 91.0
    assert f(1.0, w=10.0) == 21.0
    assert f(x=1.0, y=1.0, w=1.0) == 2.0
    assert f(1.0) == 61.0
    for again in (f.copy(), pickle.loads(pickle.dumps(f))):
        assert again(1.0) == 61.0


def test_what_has_no_value_must_be_given():
    f = reference([In(x, value=1.0), y], x - y)
    assert f(y=3.0) == -2.0
    with pytest.raises(TypeError, match="no value was given for 1"):
        f()
    with pytest.raises(TypeError, match="no argument nonsense"):
        f(nonsense=1.0, y=1.0)


def test_a_value_is_converted_like_an_argument():
    n = pt.lscalar("n")
    assert reference([In(n, value=2)], n + 1)() == 3
    with pytest.raises(TypeError, match="must be"):
        reference([In(n, value=2.5)], n + 1)()


def test_an_input_says_how_its_arguments_are_converted():
    v, w = pt.fvector("v"), pt.fvector("w")
    doubles = np.array([0.1, 0.2])
    f = reference([In(v, allow_downcast=True), In(w, strict=True)], v + w)
    assert f(doubles, doubles.astype("float32")).dtype == np.float32
    with pytest.raises(TypeError, match="must be"):
        f(doubles, [1, 2])
    everything = reference([v, In(w, allow_downcast=False)], v + w, allow_input_downcast=True)
    everything(doubles, doubles.astype("float32"))
    with pytest.raises(TypeError, match="must be"):
        everything(doubles, doubles)
    with pytest.raises(TypeError, match="must be"):
        pickle.loads(pickle.dumps(everything))(doubles, doubles)


def test_outputs_with_options_are_their_variables():
    assert reference([x], Out(x + 1, borrow=True))(1.0) == 2.0
    assert reference([x], [Out(x + 1), x])(1.0) == [2.0, 1.0]
    assert reference([x], {"a": Out(x + 1)})(1.0) == {"a": 2.0}


@pytest.mark.parametrize("mode", ["NUMPY", "FAST_RUN"])
def test_an_input_with_an_update_is_a_state(mode):
    f = function([x, In(y, update=y + x, value=5.0)], y, mode=mode)
    assert [f(1.0), f(1.0), f(1.0, 100.0), f(0.0)] == [5.0, 6.0, 100.0, 101.0]
    copied, pickled = deepcopy(f), pickle.loads(pickle.dumps(f))
    assert f(1.0) == 101.0
    assert [copied(1.0), pickled(2.0), copied(0.0), pickled(0.0)] == [101.0, 101.0, 102.0, 103.0]
    given_first = function([x, In(y, update=y + x)], y, mode=mode)
    with pytest.raises(TypeError, match="no value was given for 1"):
        given_first(1.0)
    assert [given_first(1.0, 2.0), given_first(1.0)] == [2.0, 3.0]


def test_inputs_and_shared_variables_may_have_one_state():
    container, kept = Container(y, [np.array(10.0)]), engine.shared(1.0)
    add = reference([x, In(y, update=y + x, value=container)], [])
    take = reference([x, In(y, update=y - x, value=container, implicit=False)], y)
    add(5.0)
    assert (take(1.0), container.value) == (15.0, 14.0)
    assert (take(1.0, 3.0), container.value) == (3.0, 2.0)
    container.value = 7
    assert take(1.0) == 7.0
    swap = reference([In(y, update=kept, value=container)], [], updates={kept: y})
    swap()
    assert (container.value, kept.get_value()) == (1.0, 6.0)
    doubled = reference([In(y, update=2 * y, value=kept)], y)
    assert (doubled(), doubled(), kept.get_value()) == (6.0, 12.0, 24.0)


def test_states_that_no_function_has_are_refused():
    with pytest.raises(TypeError, match="must have its type"):
        In(x, update=pt.dvector())
    with pytest.raises(TypeError, match="it is implicit, and has no value"):
        In(x, implicit=True)
    with pytest.raises(TypeError, match="must be a list with the value"):
        Container(x, 1.0)
    n = engine.scalar.float64("n")
    with pytest.raises(TypeError, match="only a tensor may be one"):
        reference([In(n, value=1.0, implicit=True)], n + 1)


def test_whole_numbers_outside_of_a_dtype_are_overflows():
    b, u = pt.bvector("b"), pt.scalar("u", dtype="uint8")
    f = reference([b, u], b + u)
    for arguments in (([312], 1), ([3], -1)):
        with pytest.raises(OverflowError, match="argument"):
            f(*arguments)
    with pytest.raises(TypeError) as caught:
        f([1], 2.5)
    assert not isinstance(caught.value, OverflowError)


def test_a_given_may_have_another_type_if_the_graph_can_be_built_of_it():
    m, v, w = pt.imatrix("m"), pt.ivector("v"), pt.ivector("w")
    rebuilt = reference([m, w], v * w, givens=[(v, m)], rebuild_strict=False)
    assert rebuilt([[1, 2], [3, 4]], [1, 10]).tolist() == [[1, 20], [3, 40]]
    with pytest.raises(TypeError, match="is needed"):
        reference([m, w], v * w, givens=[(v, m)])
    with pytest.raises(RuntimeError, match="is an input, and givens replace it"):
        reference([x], x * 2, givens={x: x + 1})


def test_a_function_has_the_name_it_is_given():
    f = reference([x], x + 1)
    assert (f.name, f.copy().name, f.trust_input) == (None, "function copy", False)
    assert reference([x], x, trust_input=True).trust_input
    assert f.dprint(file="str") == engine.printing.dprint(f, file="str")
    with pytest.raises(TypeError, match="its name is"):
        In(x, name=[])
    with pytest.raises(TypeError, match="or not just one"):
        reference([x, pt.dscalar("x")], x, on_unused_input="ignore")(1.0, x=2.0)


def test_inputs_that_no_function_takes_are_refused():
    with pytest.raises(TypeError, match=r"shared variable \(kept\) as explicit input"):
        reference([In(engine.shared(1.0, "kept"))], x)
    with pytest.raises(engine.errors.UnusedInputError, match="twice"):
        reference([x, In(x)], x)
    with pytest.raises(TypeError, match="no constant"):
        reference([In(pt.constant(1.0))], x)
    with pytest.raises(NotImplementedError, match="profile"):
        reference([x], x, profile=True)


def test_arguments_of_function_are_in_pytensors_order():
    f = function([x], x + 1, "NUMPY", None, None, False, False, "named", True, None, False, "raise", False)
    assert f.name == "named"
    assert f(1.0) == 2.0


def test_modes_have_pytensors_names():
    assert Mode("py").linker == "numpy"
    assert {Mode(linker).linker for linker in ("c", "cvm", "vm", "c|py", "numba")} == {"numba"}
    assert Mode("cvm", "fast_run") == get_mode("CVM") == get_default_mode() == get_mode("FAST_RUN")
    assert Mode("cvm", "fast_compile") == get_mode("FAST_COMPILE")
    assert Mode("py", None) == Mode("py", "None") == get_mode("NUMPY")
    with pytest.raises(ValueError, match="optimizer is 'fastest'"):
        Mode("cvm", "fastest")
    with pytest.raises(ValueError, match="linker is 'jax'"):
        Mode("jax")


def test_a_variable_is_evaluated_with_values_of_inputs_or_of_their_names():
    total = x + 2 * y
    assert total.eval({x: 1.0, y: 2.0}, mode="NUMPY") == 5.0
    assert total.eval({"x": 1.0, y: 2.0}, mode="NUMPY") == 5.0
    assert pt.constant(2.0).eval() == 2.0
    with pytest.raises(ValueError, match="nonsense not found in graph"):
        total.eval({"nonsense": 1.0})
    with pytest.raises(ValueError, match="Found multiple variables with name x"):
        (pt.dscalar("x") + x).eval({"x": 1.0})
    with pytest.raises(engine.errors.UnusedInputError, match="input y is not used"):
        x.eval({x: 1.0, y: 2.0}, mode="NUMPY")
    assert x.eval({x: 1.0, y: 2.0}, mode="NUMPY", on_unused_input="ignore") == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert total.eval({total: 3.0}, mode="NUMPY") == 3.0


def test_gradients_are_checked_in_a_mode():
    for mode in ("NUMPY", "FAST_RUN", None):
        engine.verify_grad(lambda v: pt.exp(v) * v, [np.array([0.5, -1.0])], mode=mode)
    with pytest.raises(engine.errors.GradientError):
        engine.verify_grad(lambda v: pt.abs(v), [np.array([1e-9])], mode="FAST_RUN")


def test_constants_of_equal_bits_have_equal_signatures():
    values = (0, 0.0, -0.0, np.nan, [0.0], [0.0, np.nan], np.float32(0))
    signatures = [pt.constant(value).signature() for value in values]
    assert signatures == [pt.constant(value).signature() for value in values]
    assert len(set(signatures)) == len(values)
