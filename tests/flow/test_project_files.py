"""What people and services read of the project: README on PyPI, metadata, citation, templates, workflows."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from readme_renderer import markdown

import cachegraph
from cachegraph.object_code.llvm_library import CHECKED_RELEASES

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
HOME = PROJECT["urls"]["Homepage"]
YAML = [
    *(ROOT / ".github").rglob("*.yml"),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
    ROOT / "recipe" / "recipe.yaml",
]
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
CONDA_NAMES = {"xxhash": "python-xxhash"}


def read(path: str) -> dict[str, Any]:
    """Return the content of a YAML file of the project."""
    found = yaml.safe_load((ROOT / path).read_text())
    assert isinstance(found, dict)
    return found


def requirements(lines: list[str]) -> dict[str, set[str]]:
    """Return the bounds of each requirement of this system, by the name of the package."""
    found = [Requirement(line) for line in lines]
    return {
        each.name: {str(bound) for bound in each.specifier}
        for each in found
        if each.marker is None or each.marker.evaluate()
    }


# README


def test_pypi_renders_readme() -> None:
    page = markdown.render(README)
    assert page is not None
    assert page.count("<table>") >= 5
    assert page.count("<pre") == README.count("```") // 2
    assert "--8&lt;--" not in page, "a mark for the site is shown"


def test_links_of_readme_are_absolute_and_lead_to_files_of_the_project() -> None:
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert all(target.startswith("https://") for target in targets)
    paths = [
        match[1] for target in targets if (match := re.match(rf"{HOME}/(?:blob|tree)/main/(.*)", target))
    ]
    assert len(paths) >= 15
    assert not [path for path in paths if not (ROOT / path).exists()]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "tests/README.md"])
def test_links_of_other_pages_lead_to_files(name: str) -> None:
    page = ROOT / name
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [t for t in targets if not t.startswith("https://") and not (page.parent / t).exists()]
    assert not missing


# Versions and dependencies


def test_all_files_name_one_version() -> None:
    version = PROJECT["version"]
    assert cachegraph.__version__ == version
    assert read("CITATION.cff")["version"] == version
    assert read("recipe/recipe.yaml")["context"]["version"] == version


def test_the_changelog_begins_with_what_is_unreleased_and_dates_the_rest() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0].startswith("[Unreleased](")
    dates = {}
    for heading in headings[1:]:
        match = re.fullmatch(r"\[(\d+\.\d+\.\d+)\]\(\S+\) - (\d{4}-\d\d-\d\d)", heading)
        assert match, heading
        dates[match[1]] = match[2]
    assert next(iter(dates)) == PROJECT["version"]
    assert read("CITATION.cff")["date-released"] == dates[PROJECT["version"]]


def test_sections_of_the_changelog_have_the_names_of_the_format() -> None:
    sections = set(re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE))
    assert sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_packages_whose_internals_are_used_have_an_upper_bound() -> None:
    bounds = requirements(PROJECT["dependencies"])
    for name in ("numba", "llvmlite"):
        assert any(bound.startswith("<") for bound in bounds[name])


def test_the_bounds_of_llvmlite_are_the_releases_whose_functions_were_checked() -> None:
    lowest, highest = CHECKED_RELEASES[0], int(CHECKED_RELEASES[-1].rpartition(".")[2])
    assert requirements(PROJECT["dependencies"])["llvmlite"] == {f">={lowest}", f"<0.{highest + 1}"}


def test_the_recipe_has_the_dependencies_of_the_package() -> None:
    wanted = {
        CONDA_NAMES.get(name, name): bound for name, bound in requirements(PROJECT["dependencies"]).items()
    }
    lines = read("recipe/recipe.yaml")["requirements"]["run"]
    recipe = requirements([line for line in lines if not line.startswith("__")])
    assert "__linux" in lines
    assert recipe.pop("python") == {PROJECT["requires-python"]}
    assert recipe == wanted


def test_the_recipe_builds_the_checkout_that_it_lies_in() -> None:
    source = read("recipe/recipe.yaml")["source"]
    assert (ROOT / "recipe" / source["path"]).resolve() == ROOT


def test_the_oldest_dependencies_are_the_lower_bounds() -> None:
    pins = dict(
        line.lower().split("==")
        for line in (ROOT / "constraints-oldest.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    lowest = {
        name: bound.removeprefix(">=")
        for name, bounds in requirements(PROJECT["dependencies"]).items()
        for bound in bounds
        if bound.startswith(">=")
    }
    assert set(lowest) <= set(pins)
    wrong = {name for name, bound in lowest.items() if not f"{pins[name]}.".startswith(f"{bound}.")}
    assert not wrong


def test_the_classifiers_are_the_pythons_that_ci_tests() -> None:
    tested = read(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    named = [text.removeprefix(prefix) for text in PROJECT["classifiers"] if text.startswith(f"{prefix}3.")]
    assert named == tested
    assert PROJECT["requires-python"] == f">={tested[0]}"


# Citation, templates, workflows, hooks


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_of_yaml_parses(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_citation_has_what_the_format_asks_for() -> None:
    citation = read("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license", "repository-code"} <= citation.keys()
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == HOME


def test_templates_of_issues_have_what_github_asks_for() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        if path.name == "config.yml":
            continue
        template = read(str(path.relative_to(ROOT)))
        assert {"name", "description", "body"} <= template.keys()
        names = [field["id"] for field in template["body"] if field["type"] != "markdown"]
        assert len(names) == len(set(names)) > 0
        assert all("label" in field["attributes"] for field in template["body"] if "id" in field)


def commands(workflow: str) -> Iterator[list[str]]:
    """Yield the words of each command of a workflow."""
    for job in read(f".github/workflows/{workflow}")["jobs"].values():
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            for line in step.get("run", "").splitlines():
                yield shlex.split(line)


@pytest.mark.parametrize("workflow", ["tests.yml", "release.yml"])
def test_the_commands_of_a_workflow_exist(workflow: str) -> None:
    found = list(commands(workflow))
    assert found
    for program, *words in found:
        if program == "make":
            named = {word for word in words if "=" not in word and not word.startswith("-")}
            assert named
            assert named <= TARGETS
        else:
            assert [program.rpartition("/")[2], *words[:3]] == ["python", "-m", "pip", "install"]


@pytest.mark.parametrize("workflow", ["tests.yml", "release.yml"])
def test_a_workflow_refers_to_what_is_there(workflow: str) -> None:
    jobs = read(f".github/workflows/{workflow}")["jobs"]
    text = (ROOT / ".github" / "workflows" / workflow).read_text()
    assert not [name for name in re.findall(r"[\w-]+\.txt", text) if not (ROOT / name).is_file()]
    for name, job in jobs.items():
        assert {job["needs"]} <= jobs.keys() if "needs" in job else True, name
        matrix = job.get("strategy", {}).get("matrix", {})
        assert set(re.findall(r"matrix\.(\w+)", str(job))) == set(matrix), name
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step.get("uses", "a/b@v1")), step


def test_the_oldest_and_the_newest_dependencies_are_tested() -> None:
    lines = [" ".join(words) for words in commands("tests.yml")]
    assert any("--pins constraints-oldest.txt --version 3.11" in line for line in lines)
    assert any("--upgrade-strategy eager" in line for line in lines)


def test_only_the_job_without_the_gil_may_fail() -> None:
    jobs = read(".github/workflows/tests.yml")["jobs"]
    assert [name for name, job in jobs.items() if job.get("continue-on-error")] == ["free-threaded"]


def test_hooks_run_programs_of_the_environment() -> None:
    hooks = [hook for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert {hook["id"] for hook in hooks} == {"ruff", "ruff-format", "mypy", "lint-imports"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks)
