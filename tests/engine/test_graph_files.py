"""Drawings in files: by PyTensor's name, with the graphs of loops beside them."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.printing import pydotprint

x, n = pt.dvector("x"), pt.lscalar("n")


def test_a_drawing_is_returned_on_demand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = pt.dot(x, x)
    drawings = [
        pydotprint(each, return_image=True) for each in (out, [out], out.owner, engine.function([x], out))
    ]
    assert all(drawing.startswith("<svg") and "Dot" in drawing for drawing in drawings)
    assert drawings[0] == FunctionGraph(outputs=[out])._repr_svg_()
    assert list(tmp_path.iterdir()) == []


def test_the_graphs_of_loops_are_drawn_beside(tmp_path, capsys):
    out = engine.scan(lambda s: 2 * s, None, [np.float64(1.0)], n_steps=n, return_updates=False)
    pydotprint(out, tmp_path / "loop.svg", scan_graphs=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loop.svg", "loop_Scan_1.svg"]
    assert "mul" in (tmp_path / "loop_Scan_1.svg").read_text().lower()
    assert capsys.readouterr().out == f"The output file is available at {tmp_path / 'loop.svg'}\n"


def test_labels_are_cut_on_demand_and_the_file_has_a_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pydotprint([pt.log1p(x), pt.expm1(x)], max_label_size=4, print_output_file=False)
    text = (tmp_path / "pytensor.pydotprint.svg").read_text()
    assert "log…" in text
    assert "exp…" in text
    assert capsys.readouterr().out == ""


def test_other_formats_and_what_is_no_graph_are_refused():
    with pytest.raises(ValueError, match="as 'png': it is drawn as 'svg'"):
        pydotprint(x, format="png")
    with pytest.raises(TypeError, match="Drawing 'x': it is no function"):
        pydotprint("x")
