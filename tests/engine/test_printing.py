import io
from types import SimpleNamespace

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import Apply, FunctionGraph, Op
from engine.printing import char_from_number, dprint, get_node_by_id, min_informative_str
from engine.rewriting import run_pipeline


def text(graph, **options):
    return dprint(graph, file="str", **options)


@pytest.fixture
def graph():
    x, y = pt.dvector("x"), pt.dscalar("y")
    total = pt.exp(x) + y
    total.name = "total"
    return [x, y], total * pt.sum(total)


def test_a_graph_is_a_tree_whose_shared_parts_are_printed_once(graph):
    assert text(graph[1]) == (
        "Mul [id A]\n"
        " ├─ Add [id B] 'total'\n"
        " │  ├─ Exp [id C]\n"
        " │  │  └─ x [id D]\n"
        " │  └─ ExpandDims{axis=0} [id E]\n"
        " │     └─ y [id F]\n"
        " └─ ExpandDims{axis=0} [id G]\n"
        "    └─ Sum{axis=[0]} [id H]\n"
        "       └─ Add [id B] 'total'\n"
        "          └─ ···\n"
    )


def test_a_depth_limits_the_levels(graph):
    assert text(graph[1], depth=2) == "Mul [id A]\n ├─ Add [id B] 'total'\n └─ ExpandDims{axis=0} [id C]\n"
    assert text(graph[1], depth=1) == "Mul [id A]\n"
    assert text(graph[1], depth=0).strip() == ""


def test_types_and_shapes_are_printed_on_demand():
    x = pt.fmatrix("x")
    assert text(pt.exp(x), print_type=True) == (
        "Exp [id A] <Matrix(float32, shape=(?, ?))>\n └─ x [id B] <Matrix(float32, shape=(?, ?))>\n"
    )
    assert text(pt.exp(x), print_shape=True) == "Exp [id A] shape=(?, ?)\n └─ x [id B] shape=(?, ?)\n"


def test_ids_are_letters_numbers_addresses_or_none():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert text(y, id_type="int") == "Exp [id 0]\n └─ x [id 1]\n"
    assert text(y, id_type="") == "Exp\n └─ x\n"
    assert text(y, id_type="id") == f"Exp [id {id(y.owner)}]\n └─ x [id {id(x)}]\n"
    with pytest.raises(ValueError, match="id_type is 'letters'"):
        text(y, id_type="letters")


def test_several_texts_can_share_ids():
    x = pt.dvector("x")
    used = {}
    text(pt.exp(x), used_ids=used)
    assert text(pt.sin(x), used_ids=used) == "Sin [id C]\n └─ x [id B]\n"


def test_what_has_a_name_can_end_the_tree(graph):
    lines = text(graph[1], stop_on_name=True).splitlines()
    assert lines[1:3] == [" ├─ Add [id B] 'total'", " │  └─ ···"]


class Overwrite(Op):
    """Returns one tensor that overwrites the first input, and a view of the second."""

    __props__ = ()
    destroy_map = {0: [0]}
    view_map = {1: [1]}

    def make_node(self, x, y):
        return Apply(self, [x, y], [x.type(), y.type()])


def test_what_is_overwritten_and_viewed_is_printed_on_demand():
    x = pt.dvector("x")
    out = Overwrite()(pt.exp(x), x)[0]
    assert text(out).splitlines()[0] == "Overwrite.0 [id A]"
    assert text(out, print_destroy_map=True).splitlines()[0] == "Overwrite.0 [id A] d={0: [0]}"
    assert text(out, print_view_map=True).splitlines()[0] == "Overwrite.0 [id A] v={1: [1]}"
    assert text(out, print_memory_map=True).splitlines()[0] == "Overwrite.0 [id A] d={0: [0]} v={1: [1]}"


def test_the_inputs_of_graphs_are_printed_on_demand(graph):
    inputs, output = graph
    lines = text(FunctionGraph(inputs, [output]), print_fgraph_inputs=True).splitlines()
    assert lines[:3] == ["→ x [id A]", "→ y [id B]", "Mul [id C] 5"]


def test_nodes_and_inputs_of_functions_are_printed_as_their_variables():
    x = pt.dvector("x")
    node = Overwrite().make_node(x, x)
    assert text(node).splitlines()[::3] == ["Overwrite.0 [id A]", "Overwrite.1 [id A]"]
    assert text(SimpleNamespace(variable=x)) == "x [id A]\n"


def test_graphs_say_in_which_order_their_nodes_run(graph):
    inputs, output = graph
    fgraph = FunctionGraph(inputs, [output])
    lines = text(fgraph).splitlines()
    assert lines[0] == "Mul [id A] 5"
    assert lines[2] == " │  ├─ Exp [id C] 0"
    compiled = SimpleNamespace(maker=SimpleNamespace(fgraph=fgraph))
    assert text(compiled) == text(fgraph)


def test_frozen_graphs_show_their_inputs_by_number(graph):
    inputs, output = graph
    lines = text(FunctionGraph(inputs, [output]).freeze()).splitlines()
    assert lines[3] == " │  │  └─ i0 [id D]"


def test_several_variables_share_letters(graph):
    inputs, output = graph
    assert text([output, output, inputs[0]]).splitlines()[-3:] == ["Mul [id A]", " └─ ···", "x [id D]"]


def test_small_constants_show_their_value_and_large_ones_their_type():
    x = pt.dvector("x")
    assert "└─ [1. 2.] [id C]" in text(x + np.array([1.0, 2.0]))
    assert "└─ <Vector(float64, shape=(50,))> [id C]" in text(x + np.ones(50))


def test_inner_graphs_are_printed_once_below():
    x, y = pt.dvector("x"), pt.dvector("y")
    fgraph = FunctionGraph([x, y], [pt.dot(pt.sin(pt.exp(x)), pt.sin(pt.exp(y)))])
    run_pipeline(fgraph)
    assert text(fgraph).split("\n\n") == [
        "Dot [id A] 2\n"
        " ├─ Composite{sin(exp(i0))} [id B] 0\n"
        " │  └─ x [id C]\n"
        " └─ Composite{sin(exp(i0))} [id D] 1\n"
        "    └─ y [id E]",
        "Inner graphs:",
        "Composite{sin(exp(i0))} [id B, D]\n ← sin [id F]\n    └─ exp [id G]\n       └─ i0 [id H]\n",
    ]
    assert "Inner graphs" not in text(fgraph, print_inner_graphs=False)


class Holder(Op):
    """Applies a frozen graph."""

    __props__ = ("fgraph",)

    def __init__(self, fgraph):
        self.fgraph = fgraph

    def make_node(self, *inputs):
        return Apply(self, inputs, [variable.type() for variable in self.fgraph.outputs])

    def __str__(self):
        return f"Holder{len(self.fgraph.nodes)}"


def test_graphs_inside_of_graphs_inside_are_printed_once_too():
    x = pt.dvector("x")
    inner = Holder(FunctionGraph([x], [pt.exp(x), pt.sin(pt.exp(x))]).freeze())
    first, _ = inner(x)
    outer = Holder(FunctionGraph([x], [pt.cos(first), pt.exp(x)]).freeze())
    assert text(outer(inner(x)[1])[0]).split("\n\n")[2:] == [
        "Holder3 [id A]\n"
        " ← Cos [id D]\n"
        "    └─ Holder2.0 [id E]\n"
        "       └─ i0 [id F]\n"
        " ← Exp [id G]\n"
        "    └─ i0 [id F]",
        "Holder2 [id B, E]\n ← Exp [id G]\n    └─ ···\n ← Sin [id H]\n    └─ Exp [id G]\n       └─ ···\n",
    ]


def test_the_text_goes_where_it_is_sent(graph, capsys):
    stream = io.StringIO()
    assert dprint(graph[1], file=stream) is stream
    assert dprint(graph[1]) is None
    assert stream.getvalue() == capsys.readouterr().out == text(graph[1])


def test_what_is_no_graph_and_no_file_is_refused(graph):
    with pytest.raises(TypeError, match="neither a variable"):
        dprint(3)
    with pytest.raises(TypeError, match="`file` is a text file"):
        dprint(graph[1], file="graph.txt")


def test_a_chain_of_100000_nodes_is_printed_in_bounded_width():
    y = pt.dvector("x")
    for _ in range(100_000):
        y = pt.sin(y)
    lines = text(y).splitlines()
    assert sum(line.lstrip().startswith(("Sin", "└─ Sin")) for line in lines) >= 100_000
    assert max(map(len, lines)) < 300
    assert lines[-1].strip().startswith("└─ x")


def test_letters_go_on_after_z():
    y = pt.dvector("x")
    for _ in range(30):
        y = pt.sin(y)
    found = [line.split("[id ")[1].split("]")[0] for line in text(y).splitlines()]
    assert found[25:29] == ["Z", "BA", "BB", "BC"]


@pytest.mark.parametrize(
    ("number", "letters"), [(0, "A"), (25, "Z"), (26, "BA"), (3 * 26**2 + 2 * 26, "DCA")]
)
def test_numbers_are_written_with_letters_as_digits(number, letters):
    assert char_from_number(number) == letters


def test_ids_can_be_automatic_names():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert text(y, id_type="auto") == f"Exp [id {y.auto_name}]\n └─ x [id {x.auto_name}]\n"
    with pytest.raises(ValueError, match="id_type is 'name'"):
        text(y, id_type="name")


def test_what_an_id_stands_for_is_found():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert get_node_by_id(y, "A") is y.owner
    assert get_node_by_id([y], "B") is x
    assert get_node_by_id(y, "C") is None


def test_a_short_form_ends_at_names_and_repeats_letters():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert min_informative_str(y * y) == "A. Mul\n B. Exp\n  C. x\n <B>"
    y.name = "y"
    assert min_informative_str(pt.log(y)) == "A. Log\n B. y"


def test_variables_nodes_and_graphs_print_themselves():
    x = pt.dvector("x")
    y = pt.exp(x)
    graph = FunctionGraph([x], [y])
    assert y.dprint(file="str") == y.owner.dprint(file="str") == text(y)
    assert graph.dprint(file="str") == text(graph)


def test_a_string_is_no_graph():
    with pytest.raises(TypeError, match="Printing 'blah'"):
        text("blah")


def test_a_change_of_axes_has_the_name_of_its_function():
    t = pt.dtensor3("t")
    texts = {
        "ExpandDims{axis=1}": t[:, None],
        "ExpandDims{axes=(0, 2)}": pt.expand_dims(t, (0, 2)),
        "Squeeze{axis=1}": pt.squeeze(pt.tensor("r", shape=(2, 1, 3)), 1),
        "MatrixTranspose": t.mT,
        "Transpose{axes=(2, 1, 0)}": t.T,
        "DimShuffle{order=[1,x,0]}": pt.dmatrix("m").dimshuffle(1, "x", 0),
    }
    assert [text(variable).split(" [id A]")[0] for variable in texts.values()] == list(texts)


def test_the_parts_of_an_index_are_called_what_they_are():
    x, i = pt.dmatrix("x"), pt.lscalar("i")
    texts = {
        "Subtensor{i, start:}": x[i, 1:],
        "Subtensor{start:stop:step, :stop}": x[1:i:2, :i],
        "SetSubtensor{::step}": x[::2].set(0.0),
        "AdvancedSubtensor{i, start:}": x[pt.lvector("v"), 1:],
    }
    assert [text(variable).split(" [id A]")[0] for variable in texts.values()] == list(texts)


def test_the_parts_of_a_loop_say_what_they_are_for():
    x, n = pt.dvector("x"), pt.lscalar("n")
    rows = engine.scan(
        lambda row, old, last, factor: [old * last + row * factor, row],
        x,
        [{"initial": np.zeros(2), "taps": [-2, -1]}, None],
        non_sequences=pt.dscalar("a"),
        n_steps=n,
        return_updates=False,
    )
    assert text(rows[1], print_op_info=True) == (
        "Scan.1 [id A] (outer_out_nit_sot-0)\n"
        " ├─ n [id B] (n_steps)\n"
        " ├─ x [id C] (outer_in_seqs-0)\n"
        " ├─ [0. 0.] [id D] (outer_in_mit_sot-0)\n"
        " └─ a [id E] (outer_in_non_seqs-0)\n"
        "\nInner graphs:\n\n"
        "Scan [id A]\n"
        " ← Add [id F] (inner_out_mit_sot-0)\n"
        "    ├─ Mul [id G]\n"
        "    │  ├─ i1 [id H] -> [id D] (inner_in_mit_sot-0-0)\n"
        "    │  └─ i2 [id I] -> [id D] (inner_in_mit_sot-0-1)\n"
        "    └─ Mul [id J]\n"
        "       ├─ i0 [id K] -> [id C] (inner_in_seqs-0)\n"
        "       └─ i3 [id L] -> [id E] (inner_in_non_seqs-0)\n"
        " ← i0 [id K] -> [id C] (inner_in_seqs-0) (inner_out_nit_sot-0)\n"
    )
    assert "    │  ├─ i1 [id H] -> [id D]\n" in text(rows[1])
    assert " ├─ n\n" in text(rows[1], id_type="")
    assert "->" not in text(rows[1], id_type="")


def test_a_loop_that_several_nodes_apply_has_no_arrows():
    def doubled(x):
        return engine.scan(lambda s, p: p + s, x, [np.float64(0.0)], return_updates=False)

    found = text([doubled(pt.dvector("x")), doubled(pt.dvector("y"))], print_op_info=True)
    assert "i0 [id" in found
    assert "->" not in found
    assert found.count("(inner_in_seqs-0)") == 1
