"""Inputs and outputs of functions with options: names, values, conversions; and modes by PyTensor's names."""

import pickle
import warnings

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import In, Mode, Out, function
from engine.compiling.mode import get_default_mode, get_mode

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
    with pytest.raises(TypeError, match="must be Tensor"):
        reference([In(n, value=2.5)], n + 1)()


def test_an_input_says_how_its_arguments_are_converted():
    v, w = pt.fvector("v"), pt.fvector("w")
    doubles = np.array([0.1, 0.2])
    f = reference([In(v, allow_downcast=True), In(w, strict=True)], v + w)
    assert f(doubles, doubles.astype("float32")).dtype == np.float32
    with pytest.raises(TypeError, match="must be Tensor"):
        f(doubles, [1, 2])
    everything = reference([v, In(w, allow_downcast=False)], v + w, allow_input_downcast=True)
    everything(doubles, doubles.astype("float32"))
    with pytest.raises(TypeError, match="must be Tensor"):
        everything(doubles, doubles)
    with pytest.raises(TypeError, match="must be Tensor"):
        pickle.loads(pickle.dumps(everything))(doubles, doubles)


def test_outputs_with_options_are_their_variables():
    assert reference([x], Out(x + 1, borrow=True))(1.0) == 2.0
    assert reference([x], [Out(x + 1), x])(1.0) == [2.0, 1.0]
    assert reference([x], {"a": Out(x + 1)})(1.0) == {"a": 2.0}


def test_inputs_that_no_function_takes_are_refused():
    with pytest.raises(NotImplementedError, match="shared variable"):
        In(x, value=1.0, update=x + 1)
    with pytest.raises(ValueError, match="twice"):
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
    with pytest.raises(ValueError, match="0 variables"):
        total.eval({"nonsense": 1.0})
    with pytest.raises(ValueError, match="2 variables"):
        (pt.dscalar("x") + x).eval({"x": 1.0})
    with pytest.warns(UserWarning, match="not used"):
        x.eval({x: 1.0, y: 2.0}, mode="NUMPY")
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
