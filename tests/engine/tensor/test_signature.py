"""Signatures of functions of arrays: what they name, and what is none."""

import pytest

from engine.tensor.signature import lengths_by_name, parsed


def test_axes_are_named_in_order():
    found = parsed(" (m, n),( ),(2) -> (m),(),(n,k)")
    assert found.inputs == (("m", "n"), (), ("2",))
    assert found.outputs == (("m",), (), ("n", "k"))
    assert found.place_of("n") == (0, 1)
    assert found.place_of("k") is None


@pytest.mark.parametrize("text", ["", "(m)", "(m)->", "m->m", "(m,)->(m)", "(m)->(m)->(m)", "(m)(n)->(m)"])
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(ValueError, match="must look like"):
        parsed(text)


def test_lengths_of_one_name_are_equal():
    axes = parsed("(m,m),(m,3)->()").inputs
    assert lengths_by_name(axes, [(None, 4), (4, None)]) == {"m": 4}
    with pytest.raises(ValueError, match=r"shapes \(4, 5\), \(4, 3\).*must be square"):
        lengths_by_name(axes, [(4, 5), (4, 3)])
    with pytest.raises(ValueError, match="'3' must be equal"):
        lengths_by_name(axes, [(4, 4), (4, 2)])
