"""The documentation is run, and what it says of errors, settings, commands and packages is held against the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from everlong import errors

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = list(dict.fromkeys(PAGES))
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
TWINS = sorted(page.name for page in (ROOT / "docs" / "zh").glob("*.md"))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    return [code for kind, code in _FENCE.findall(text) if kind == language]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, without backticks."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("EVERLONG_")]:
        monkeypatch.delenv(name)


# ------------------------------------------------------------------------------------------------------- it runs

RUNNABLE = [page for page in PAGES if blocks(page.read_text("utf-8"), "python")]


@pytest.mark.parametrize("page", RUNNABLE, ids=[str(page.relative_to(ROOT)) for page in RUNNABLE])
def test_the_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of one page run in order, as one program, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, code in enumerate(blocks(page.read_text("utf-8"), "python"), 1):
        exec(compile(code, f"{page.name}, example {number}", "exec"), namespace)


def test_the_readme_shows_what_the_demo_prints() -> None:
    """Line by line, less rules, frames and numbers, which depend on the width and on the machine."""
    shown = read("README.md").split("<!-- demo output: begin -->")[1].split("<!-- demo output: end -->")[0]
    command = [sys.executable, "-m", "everlong", "demo", "--language", "en"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    printed = [_words(line) for line in done.stdout.splitlines()]
    wanted = [_words(line) for line in shown.splitlines() if not line.startswith("```") and _words(line)]
    assert len(wanted) > 10
    assert not [line for line in wanted if not any(line in real for real in printed)]


def _words(line: str) -> str:
    return " ".join(re.findall(r"[A-Za-z'<>/?]+", line))


def test_there_are_examples() -> None:
    names = {page.name for page in RUNNABLE}
    assert {"README.md", "quickstart.md", "concepts.md"} <= names


# ------------------------------------------------------------------------------------------------ it is complete


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_documented(name: str) -> None:
    error = getattr(errors, name)
    found = [row for row in rows(read("docs", "errors.md")) if row[0] == name]
    assert len(found) == 1, "one row for each error"
    _, _, status, code, todo = found[0]
    assert (int(status), int(code)) == (error.status, error.exit_code)
    assert todo


def test_no_other_error_is_documented() -> None:
    named = {row[0] for row in rows(read("docs", "errors.md")) if re.fullmatch(r"[A-Z][A-Za-z]+", row[0])}
    assert named - {"Error"} == set(errors.__all__)


def test_every_setting_is_documented_with_its_default() -> None:
    from everlong.config import Settings

    documented = {row[0]: row[1] for row in rows(read("docs", "settings.md")) if len(row) == 3}
    for name, field in Settings.model_fields.items():
        default = field.get_default()
        written = "" if default in (None, "", (), frozenset()) else str(default)
        assert documented.get(name) == written, name
    assert set(documented) - {"Setting", "---"} == set(Settings.model_fields)


def test_every_command_is_documented() -> None:
    from everlong.cli.app import app

    text = read("docs", "cli.md")
    names = set(_commands(app))
    assert names
    documented = re.findall(r"^\| `everlong ([a-z -]+?)(?: [A-Z]+| --[a-z]+)?`", text, re.MULTILINE)
    assert set(documented) == names


def _commands(group, prefix=""):
    for command in group.registered_commands:
        yield prefix + (command.name or command.callback.__name__.strip("_"))
    for inner in group.registered_groups:
        yield from _commands(inner.typer_instance, f"{prefix}{inner.name} ")


def test_every_dependency_has_its_reason_and_size() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    documented = {row[0]: row for row in rows(read("docs", "dependencies.md"))}
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=!~\[;]", requirement)[0].strip()
        assert name in documented, name
        assert all(documented[name]), name
        assert re.fullmatch(r"\d+\.\d", documented[name][3]), "the size in MB"
    for extra in project["optional-dependencies"]:
        assert f"`{extra}`" in read("docs", "dependencies.md")


# -------------------------------------------------------------------------------------------------- it holds together


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    targets = _LINK.findall(page.read_text("utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_the_essential_pages_exist_in_chinese() -> None:
    assert {"why.md", "quickstart.md", "concepts.md"} <= set(TWINS)


@pytest.mark.parametrize("name", TWINS)
def test_a_translation_says_as_much(name: str) -> None:
    """Headings and examples correspond one to one, so that neither language is the poorer one."""
    english, chinese = read("docs", name), read("docs", "zh", name)
    assert len(re.findall(r"^#+ ", english, re.MULTILINE)) == len(re.findall(r"^#+ ", chinese, re.MULTILINE))
    assert [kind for kind, _ in _FENCE.findall(english)] == [kind for kind, _ in _FENCE.findall(chinese)]
    assert len(rows(english)) == len(rows(chinese))
