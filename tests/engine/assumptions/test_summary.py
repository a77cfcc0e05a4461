"""What is known of a graph's variables is told in few words, also where evidence contradicts."""

import engine.tensor as pt
from engine.assumptions import AssumptionFeature, assume, assumption_tags, summarize_assumptions
from engine.graph import FunctionGraph
from engine.printing import dprint

x = pt.dmatrix("x")


def tag_of(variable):
    return assumption_tags([variable]).get(variable, "")


def test_what_follows_from_another_property_is_not_told():
    assert tag_of(assume(x, positive_definite=True)) == "{pd}"
    assert tag_of(assume(x, diagonal=True, orthogonal=True)) == "{diag, orth}"
    assert tag_of(assume(x, symmetric=False)) == "{!sym}"
    assert tag_of(x) == ""


def test_contradictions_are_told():
    both = assume(assume(x, symmetric=False), symmetric=True)
    fgraph = FunctionGraph(outputs=[both], clone=False)
    assert "sym=CONFLICT" in summarize_assumptions(AssumptionFeature(), fgraph.outputs[0])


def test_properties_are_printed_on_demand():
    out = pt.linalg.inv(assume(x, diagonal=True, orthogonal=True))
    assert dprint(out, file="str", print_assumptions=True) == (
        "MatrixInverse [id A] a={diag, orth}\n"
        " └─ SpecifyAssumptions{diagonal, orthogonal} [id B] a={diag, orth}\n"
        "    └─ x [id C]\n"
    )
    assert "a={" not in dprint(out, file="str")
