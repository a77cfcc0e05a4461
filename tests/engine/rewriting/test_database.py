import pytest

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.rewriting import (
    DEFAULT_QUERY,
    EquilibriumDB,
    LocalGroupDB,
    MergeOptimizer,
    NodeRewriter,
    ProxyDB,
    RewriteDatabaseQuery,
    SequenceDB,
    SubstitutionNodeRewriter,
    TopoDB,
    describe,
    graph_rewriter,
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
    assert database().describe(query.including("slow")) == (
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
        "drain_specify_assumptions",
        "selections",
        "linear_algebra",
        "inline_named_ops",
        "replace_ops",
        "merge_first",
        "reroll_layers",
        "canonicalize",
        "lazy_branches",
        "batches",
        "scans",
        "scan_merge",
        "optimize_inner_graphs",
        "clean_scans",
        "merge_last",
        "local_pow_to_nested_squaring",
        "recompute_for_reductions",
        "fusion",
        "local_second_to_alloc",
        "local_inplace_setsubtensor",
        "local_inplace_AdvancedIncSubtensor",
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


def test_a_query_may_be_written_as_tags():
    merge = MergeOptimizer()
    db = SequenceDB("outer")
    db.register("merge", merge, "all")
    db.register("inner", ProxyDB(SequenceDB()), "some")
    assert db.query("+all").data == [merge]
    assert db.query("+all", "-merge").data == []
    assert "all" in db
    assert db["merge"] is merge
    with pytest.raises(ValueError, match="does not begin with"):
        db.query("all")
    with pytest.raises(KeyError, match="nothing is registered"):
        db["theirs"]


def test_what_is_no_rewrite_or_has_a_taken_tag_is_refused():
    db = SequenceDB()
    db.register("one", MergeOptimizer(), "tag")
    with pytest.raises(TypeError, match="is not a valid rewrite"):
        db.register("two", 2)
    with pytest.raises(TypeError, match="must be a number"):
        db.register("two", MergeOptimizer(), position="first")
    for name, tag in (("tag", "other"), ("two", "one")):
        with pytest.raises(ValueError, match="The tag"):
            db.register(name, MergeOptimizer(), tag)
    with pytest.raises(TypeError, match="must be a RewriteDatabase"):
        ProxyDB(2)


def test_a_name_may_be_registered_again_in_its_place():
    first, second = MergeOptimizer(), MergeOptimizer()
    db = SequenceDB()
    db.register("merge", first, "all")
    db.register("merge", second, "all", overwrite_existing=True)
    assert db.query("+all").data == [second]


def test_databases_of_node_rewrites_give_one_rewriter():
    x = pt.dvector("x")
    local = LocalGroupDB("local")
    local.register("cos", SubstitutionNodeRewriter(pt.sin, pt.cos), "all", position=1)
    local.register("tan", SubstitutionNodeRewriter(pt.cos, pt.tan), "all", position=0)
    for whole, names in ((local, ["cos"]), (LocalGroupDB(apply_all_rewrites=True), ["tan"])):
        for each in ("cos", "tan") if whole is not local else ():
            whole.register(each, local[each], "all")
        fgraph = FunctionGraph([x], [pt.sin(x)])
        TopoDB(whole, ignore_newtrees=True).query("+all").rewrite(fgraph)
        assert [str(node.op) for node in fgraph.toposort()] == names


def test_final_rewrites_run_when_no_other_applies():
    seen = []

    @graph_rewriter
    def look(fgraph):
        seen.append([str(node.op) for node in fgraph.toposort()])

    db = EquilibriumDB("equilibrium")
    db.register("cos", SubstitutionNodeRewriter(pt.sin, pt.cos), "all")
    db.register("look", look, "all", final_rewriter=True)
    db.query("+all").rewrite(FunctionGraph(outputs=[pt.sin(pt.dvector())]))
    assert seen == [["cos"]]
    with pytest.raises(ValueError, match="choose one"):
        db.register("both", look, final_rewriter=True, cleanup=True)


def test_a_rewrite_of_a_sequence_that_fails_is_told_to_a_callback_and_the_next_one_runs():
    told, ran = [], []
    failing = graph_rewriter(lambda fgraph: 1 / 0)
    db = SequenceDB(failure_callback=lambda error, sequence, rewriter: told.append((error, rewriter)))
    db.register("failing", failing, "all", position=1)
    db.register("next", graph_rewriter(lambda fgraph: ran.append(fgraph)), "all", position=2)
    assert db.__position__ == {"failing": 1, "next": 2}
    fgraph = FunctionGraph([], [])
    db.query("+all").rewrite(fgraph)
    assert [type(error) for error, _ in told] == [ZeroDivisionError]
    assert told[0][1] is failing
    assert ran == [fgraph]
    db.failure_callback = None
    with pytest.raises(ZeroDivisionError):
        db.query("+all").rewrite(fgraph)
