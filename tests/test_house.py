"""The rules of the house, as tests: floors, sizes, names, what an import costs, what the lists of packages may hold."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import everlong
from everlong import errors

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "everlong"
MODULES = sorted(SOURCE.rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

MAX_FILE, MAX_FUNCTION = 500, 80
"""Lines. A file that grows past its limit holds two things; a function that does, holds two steps."""

HAND_WRITTEN = [path for path in MODULES if "versions" not in path.parts]
"""All but migrations, which copy tables as they once were and never change again."""

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "base", "common", "misc", "shared"}
"""Module names that say nothing of what is inside, and so collect whatever has no home."""


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ------------------------------------------------------------------------------------------------------- floors


def test_every_import_goes_down() -> None:
    done = tool("lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_floors_name_no_module_twice() -> None:
    layers = PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    named = re.findall(r"\w+", " ".join(layers))
    assert len(named) == len(set(named))


def test_errors_need_nothing_at_run_time() -> None:
    """The contract lets ``errors`` name ``records`` for a type checker; this is the other half of that promise."""
    assert fresh("import sys, everlong.errors; print('everlong.records' in sys.modules)") == "False"


# ------------------------------------------------------------------------------------------------- sizes and names


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in HAND_WRITTEN}
    assert not {relative(path): lines for path, lines in lengths.items() if lines > MAX_FILE}


def test_functions_are_short() -> None:
    long = {}
    for path in HAND_WRITTEN:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    long[f"{relative(path)}:{node.name}"] = lines
    assert not long


def test_functions_are_simple() -> None:
    limit = PYPROJECT["tool"]["ruff"]["lint"]["mccabe"]["max-complexity"]
    assert limit == 10
    done = tool("ruff", "check", "--select", "C901", "--no-cache", "--ignore-noqa", "src")
    assert done.returncode == 0, done.stdout + done.stderr


def test_module_names_say_what_is_inside() -> None:
    empty = [relative(path) for path in SOURCE.rglob("*") if path.stem.strip("_") in EMPTY_NAMES]
    assert not empty


def test_nothing_is_put_off() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
    left = [relative(path) for path in MODULES if marks.search(path.read_text("utf-8"))]
    assert not left


def test_every_package_can_be_imported_as_one() -> None:
    """A folder of modules without ``__init__.py`` would be left out of type checks and floors."""
    missing = {relative(path.parent) for path in MODULES if not (path.parent / "__init__.py").exists()}
    assert not missing


# -------------------------------------------------------------------------------------------------------- errors

ERRORS = [getattr(errors, name) for name in errors.__all__]


def test_all_errors_are_exported() -> None:
    defined = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert defined == set(errors.__all__)


@pytest.mark.parametrize("error", ERRORS, ids=errors.__all__)
def test_an_error_is_explained(error: type[errors.EverlongError]) -> None:
    assert error.__doc__
    assert re.search(rf"\b{error.__name__}\b", errors.__doc__ or ""), "missing in the tree at the top of errors.py"
    assert issubclass(error, errors.EverlongError)
    assert 400 <= error.status <= 599
    assert 1 <= error.exit_code <= 9


# -------------------------------------------------------------------------------------------------- what an import costs


def test_importing_starts_nothing() -> None:
    code = """
import socket, threading, subprocess
def refuse(*_, **__): raise AssertionError("started at import")
socket.socket.__init__ = refuse
threading.Thread.start = refuse
subprocess.Popen.__init__ = refuse
import everlong, sys
print(threading.active_count(), sorted({"numpy", "sqlalchemy", "pydantic", "typer"} & set(sys.modules)))
"""
    assert fresh(code) == "1 []"


def test_importing_is_cheap() -> None:
    """Half a second is the promise; the best of three runs, because the machine may be busy with other things."""
    code = "from time import perf_counter as now; t = now(); import everlong; print(now() - t)"
    assert min(float(fresh(code)) for _ in range(3)) < 0.5


def test_every_promised_name_is_there() -> None:
    for name in everlong.__all__:
        assert getattr(everlong, name) is not None
    with pytest.raises(AttributeError):
        _ = everlong.nothing_of_the_kind


# --------------------------------------------------------------------------------------------------------- packaging

LISTS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("path", LISTS, ids=[path.name for path in LISTS])
def test_a_list_of_packages_names_no_place_and_pins_everything(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert not [line for line in lines if "://" in line or line.startswith("-") or " @ " in line]
    pins = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert pins
    assert all(re.match(r"[a-z0-9][a-z0-9._-]*==[^ ]+( ; .*)? \\$", line) for line in pins)


def test_the_lists_of_packages_agree() -> None:
    core, dev = (dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf-8"), re.MULTILINE)) for path in LISTS)
    assert core.items() <= dev.items()
    wanted = {re.split(r"[<>=!~\[;]", item)[0].strip() for item in PYPROJECT["project"]["dependencies"]}
    assert wanted <= core.keys()


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PYPROJECT["project"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "src/everlong/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", everlong.__version__)
    assert [relative(p) for p in MODULES if re.search(r"^__version__\s*=", p.read_text("utf-8"), re.MULTILINE)] == [
        "src/everlong/__init__.py"
    ]
    assert f"## [{everlong.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_package_says_that_it_is_typed() -> None:
    assert (SOURCE / "py.typed").exists()
