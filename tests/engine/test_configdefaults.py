"""The flags: floatX is the dtype of tensors that are made without one, and of nothing else."""

import threading

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import config
from engine.errors import Float64Error
from engine.scalar import ScalarType


def test_tensors_without_a_dtype_have_that_of_the_flag():
    with config.change_flags(floatX="float32"):
        made = [pt.vector(), pt.tensor(shape=(2,)), pt.zeros(3), pt.ones((2, 2)), pt.eye(2), pt.tri(2)]
        made += [
            pt.as_tensor([]),
            pt.cast(pt.ivector(), "floatX"),
            pt.random.normal(),
            pt.TensorType("floatX")(),
        ]
        assert {variable.dtype for variable in made} == {"float32"}
        assert ScalarType("floatX").dtype == "float32"
        assert pt.vector(dtype="float64").dtype == pt.zeros_like(pt.dscalar()).dtype == "float64"
    assert pt.vector().dtype == pt.zeros(3).dtype == pt.random.normal().dtype == "float64"


def test_the_former_value_comes_back_also_after_an_error_and_in_a_decorator():
    context = config.change_flags(floatX="float32")
    with context:
        with config.change_flags(floatX="float16"), context:
            assert config.floatX == "float32"
        assert config.floatX == "float32"
        with pytest.raises(ZeroDivisionError), config.change_flags(floatX="float16"):
            _ = 1 / 0
        assert config.floatX == "float32"
    assert config.floatX == "float64"

    @config.change_flags(floatX="float32")
    def made():
        return pt.matrix().dtype

    assert (made(), config.floatX) == ("float32", "float64")


def test_other_flags_and_other_dtypes_are_refused():
    with pytest.raises(AttributeError, match=r"config has floatX, .*, optimizer_verbose_ignore only"):
        config.change_flags(cxx="")
    with pytest.raises(AttributeError):
        config.mode = "FAST_RUN"
    for dtype in ("int64", "complex128", "float128", None):
        with pytest.raises(ValueError, match="must be one of float64, float32, float16"):
            config.floatX = dtype
    with pytest.raises(ValueError, match="Setting cast_policy to 'numpy': it must be one of custom"):
        config.cast_policy = "numpy"
    with pytest.raises(ValueError, match="Setting optimizer_verbose to 2: it must be one of False, True"):
        config.optimizer_verbose = 2


@pytest.mark.parametrize(
    "dtypes", [("float32", "int8"), ("int32", "int64"), ("float16", "float64"), ("uint8",) * 2]
)
def test_a_range_has_numpys_dtype_under_numpys_cast_policy(dtypes):
    start, stop = (pt.scalar(dtype=dtype) for dtype in dtypes)
    due = np.arange(*(np.array(value, dtype) for value, dtype in zip((0, 3), dtypes, strict=True)))
    with config.change_flags(cast_policy="numpy+floatX"):
        found = pt.arange(start, stop)
        with config.change_flags(floatX="float32"):
            narrow = pt.arange(start, stop).dtype
            assert pt.arange(0.5, 3).dtype == "float32"
    assert found.dtype == due.dtype
    assert narrow == ("float32" if due.dtype == "float64" and "float64" not in dtypes else due.dtype)
    np.testing.assert_array_equal(engine.function([start, stop], found)(0, 3), due)


def test_a_python_float_alone_is_floatX_under_numpys_cast_policy():
    x = pt.dvector("x")
    with config.change_flags(cast_policy="numpy+floatX", floatX="float32"):
        found = [pt.constant(1.5), pt.as_tensor(0.1), pt.constant(np.float64(1.5)), pt.constant(2), x + 0.1]
        assert [each.dtype for each in found] == ["float32", "float32", "float64", "int64", "float64"]
        f = engine.function([x], pt.log(1 / (1 + pt.exp(-x))))
        assert f([0.0])[0] == np.log(0.5)
    assert pt.constant(1.5).dtype == "float64"


def test_the_flag_warn_float64_tells_of_what_a_user_makes_and_not_of_what_a_compile_makes():
    x = pt.fvector("x")
    with config.change_flags(warn_float64="raise"):
        with pytest.raises(Float64Error, match=r"Making y of type Vector.*the flag warn_float64") as caught:
            pt.dvector("y")
        assert caught.value.type == pt.dvector
        with pytest.raises(Float64Error, match="cast it, or its arguments, to float32"):
            x + np.ones(2)
        made = pt.sum(pt.exp(x)) + pt.mean(x) * 2.5
        assert engine.function([x], [made, pt.grad(made, x)])([1, 2])[0] == np.float32(np.e + np.e**2 + 3.75)
    with config.change_flags(warn_float64="warn"), pytest.warns(UserWarning, match="warn_float64") as told:
        pt.cast(x, "float64")
    assert told[0].filename == __file__


class _NeverRead:
    # While a function is compiled, these decide nothing.
    cast_policy = "numpy+floatX"
    warn_float64 = "raise"

    def __getattr__(self, name):
        raise AssertionError(f"a graph that is compiled must not depend on the flag {name}")


def test_no_function_depends_on_the_flag_that_holds_when_it_is_compiled(monkeypatch):
    x, v = pt.dmatrix("x"), pt.fvector("v")
    outputs = [
        pt.special.logsumexp(x, axis=1),
        pt.linalg.slogdet(pt.dot(x, x.T) + pt.eye(3))[1],
        pt.pad(v, 2, mode="linear_ramp", end_values=1.0),
        pt.grad(pt.sum(pt.sort(v) ** 2), v),
        pt.diag(v) @ pt.cast(x, "float32"),
        pt.mean(pt.cast(v, "int8")),
        pt.repeat(v, 2)[::2].set(0.0),
        pt.grad(pt.sum(engine.scan(lambda a, b: pt.tanh(a * b), v, [v[0]], return_updates=False)), v),
    ]
    for module in ("engine.tensor.type", "engine.scalar.type"):
        monkeypatch.setattr(f"{module}.config", _NeverRead())
    for mode in ("FAST_RUN", "NUMPY"):
        found = engine.function([x, v], outputs, mode=mode)(np.eye(3), np.arange(3, dtype="float32"))
        assert [each.dtype.name for each in found] == [each.dtype for each in outputs]


def test_threads_that_compile_leave_the_flags_of_others_as_they_are():
    def compile_some(number):
        x = pt.fvector(f"x{number}")
        y = pt.cast(pt.exp(x * number), "float32")
        for _ in range(10):
            engine.function([x], pt.sum(y) * number, mode="NUMPY")([1.0])

    with config.change_flags(cast_policy="numpy+floatX", warn_float64="raise"):
        threads = [threading.Thread(target=compile_some, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(1000):
            assert (config.cast_policy, config.warn_float64) == ("numpy+floatX", "raise")
            with pytest.raises(Float64Error):
                pt.dvector()
        for thread in threads:
            thread.join()
    assert (config.cast_policy, config.warn_float64) == ("custom", "ignore")
