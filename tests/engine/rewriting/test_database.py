import pytest

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.rewriting import (
    DEFAULT_QUERY,
    EquilibriumDB,
    MergeOptimizer,
    NodeRewriter,
    RewriteDatabaseQuery,
    SequenceDB,
    describe,
    node_rewriter,
    run_pipeline,
)


@node_rewriter(None)
def nothing(fgraph, node):
    return None


def database():
    inner = EquilibriumDB("inner")
    inner.register("slow", nothing, "all", "costly", position=2)
    inner.register("fast", nothing, "all", position=1)
    outer = SequenceDB("outer")
    outer.register("merge", MergeOptimizer(), "all", position=10)
    outer.register("inner", inner, "all", position=0.5)
    return outer


def test_what_runs_is_described_by_names_and_positions_in_running_order():
    assert database().describe(RewriteDatabaseQuery(include=["all"])) == (
        ("inner", 0.5, ("fast", 1.0), ("slow", 2.0)),
        ("merge", 10.0),
    )


def test_a_query_stops_before_its_cutoff():
    query = RewriteDatabaseQuery(include=["all"], position_cutoff=10)
    assert [row[0] for row in database().describe(query)] == ["inner"]
    assert query.excluding("costly").including("x").requiring("all").position_cutoff == 10
    assert query != RewriteDatabaseQuery(include=["all"])


def test_a_name_or_a_tag_excludes():
    query = RewriteDatabaseQuery(include=["all"])
    assert database().describe(query.excluding("costly", "merge")) == (("inner", 0.5, ("fast", 1.0)),)
    assert database().describe(query.excluding("inner")) == (("merge", 10.0),)


def test_required_tags_are_all_needed():
    query = RewriteDatabaseQuery(include=["all", "inner"]).requiring("all")
    assert database().describe(query.requiring("costly")) == ()
    assert database().describe(query) == database().describe(RewriteDatabaseQuery(include=["all"]))


def test_including_adds_by_name():
    query = RewriteDatabaseQuery(include=["merge"])
    assert database().describe(query.including("inner", "slow")) == (
        ("inner", 0.5, ("slow", 2.0)),
        ("merge", 10.0),
    )


def test_queries_are_values():
    first = RewriteDatabaseQuery(["a", "b"]).excluding("c")
    assert first == RewriteDatabaseQuery(("b", "a"), exclude={"c"})
    assert hash(first) == hash(RewriteDatabaseQuery(("b", "a"), exclude={"c"}))
    assert first.including("d") != first


def test_a_name_is_registered_once():
    db = database()
    with pytest.raises(ValueError, match="there is a rewrite of that name"):
        db.register("merge", MergeOptimizer(), position=1)


def test_the_pipeline_is_described_by_plain_values_alone():
    def check(item):
        if isinstance(item, tuple):
            for member in item:
                check(member)
        else:
            assert type(item) in (str, float)

    found = describe()
    check(found)
    assert [row[0] for row in found] == [
        "inline_graphs",
        "merge_first",
        "canonicalize",
        "lazy_branches",
        "batches",
        "scans",
        "optimize_inner_graphs",
        "clean_scans",
        "merge_last",
        "recompute_for_reductions",
        "fusion",
        "local_inplace_setsubtensor",
        "local_inplace_AdvancedIncSubtensor1",
    ]
    assert describe(DEFAULT_QUERY.excluding("local_log1p")) != found


def test_an_excluded_rewrite_is_not_applied():
    x = pt.dvector("x")
    graphs = [FunctionGraph([x], [pt.log(1 + x)]) for _ in range(2)]
    assert "local_log1p" in run_pipeline(graphs[0]).applied
    assert run_pipeline(graphs[1], DEFAULT_QUERY.excluding("stabilize")).applied == {"fusion": 1}


def test_a_query_that_chooses_nothing_leaves_a_graph_alone():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.log(1 + x) * 1])
    before = fgraph.freeze()
    report = run_pipeline(fgraph, RewriteDatabaseQuery(include=()))
    assert fgraph.freeze() == before
    assert report.total == 0


def test_a_rewrite_registered_after_sealing_is_foreign_wherever_it_is_registered():
    inner = EquilibriumDB("inner")
    outer = SequenceDB("outer")
    outer.register("inner", inner, "all")
    outer.seal()
    assert outer.foreign() == []
    inner.register("theirs", NodeRewriter(), "all")
    assert outer.foreign() == ["theirs"]
