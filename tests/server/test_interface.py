"""The description of the interface is true: requests made from it at random, and one from the answer to another, are
answered as it says. Every check of schemathesis is on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .conftest import Served

RULES = Path(__file__).parent / "schemathesis.toml"


def test_answers_are_as_described(served: Served) -> None:
    tool = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    assert tool
    headers = {"Authorization": f"Bearer {served.key(user='schema')}"}
    command = [
        *(tool, "--config-file", str(RULES), "run", f"{served.url}/v1/openapi.json", "--no-color"),
        *(word for name, value in headers.items() for word in ("--header", f"{name}: {value}")),
        *("--phases", "fuzzing,stateful", "--max-examples", "2", "--generation-deterministic", "--continue-on-failure"),
        # An export is no JSON: nothing made from the description would be one.
        *("--exclude-path-regex", "^/v1/import"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "Fuzzing" in done.stdout
    assert "Stateful" in done.stdout


def test_it_names_every_error_as_a_problem(served: Served) -> None:
    with served.http() as http:
        described = http.get("/v1/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["summary"]
        for status in ("4XX", "5XX"):
            assert "application/problem+json" in operation["responses"][status]["content"]
    public = {path for path, entry in described["paths"].items() if any("security" not in o for o in entry.values())}
    assert public == {"/v1/health", "/v1/ready"}
