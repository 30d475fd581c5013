"""What is in ``deploy/`` names commands, settings, extras, routes and files that there are. No engine is needed."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from everlong.cli.app import app
from everlong.config import Settings

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def commands() -> list[list[str]]:
    found = [service["command"] for service in compose()["services"].values() if "command" in service]
    unit = (DEPLOY / "everlong.service").read_text("utf-8")
    found += [line.split()[1:] for line in re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)]
    docker = (DEPLOY / "Dockerfile").read_text("utf-8")
    found += [yaml.safe_load(line) for line in re.findall(r"^CMD (\[.*\])$", docker, re.MULTILINE)]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_is_one(command: list[str]) -> None:
    options = [word for word in command if word.startswith("--")]
    told = CliRunner().invoke(app, [command[0], "--help"], env={"COLUMNS": "200"})
    assert told.exit_code == 0
    for option in options:
        assert option in told.output


def test_there_are_all_services() -> None:
    services = compose()["services"]
    assert set(services) == {"server", "worker", "postgres", "prometheus", "grafana"}
    assert "pgvector" in services["postgres"]["image"]
    for name, service in services.items():
        image = service["image"]
        assert image == "everlong" or re.search(r":[\w.-]*\d", image), f"{name} is not pinned"


def test_every_setting_is_one() -> None:
    names = {name for service in compose()["services"].values() for name in service.get("environment", {})}
    names |= set(re.findall(r"EVERLONG_\w+", (DEPLOY / "Dockerfile").read_text("utf-8")))
    ours = {name.removeprefix("EVERLONG_").lower() for name in names if name.startswith("EVERLONG_")}
    assert ours
    assert ours <= set(Settings.model_fields)


def test_no_password_is_written_down_and_no_port_is_open_to_the_world() -> None:
    for service in compose()["services"].values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name:
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value)
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_every_file_that_is_mounted_or_copied_is_there() -> None:
    secret = {"./prometheus.key"}
    for service in compose()["services"].values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or source in secret or (DEPLOY / source).exists(), source
            assert source.startswith(".") or source in compose()["volumes"]
    docker = (DEPLOY / "Dockerfile").read_text("utf-8")
    for line in re.findall(r"^COPY (?!--from)(.*)$", docker, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
    assert "deploy/prometheus.key" in (ROOT / ".gitignore").read_text("utf-8")


def test_every_extra_is_one() -> None:
    docker = (DEPLOY / "Dockerfile").read_text("utf-8")
    (named,) = re.findall(r'"\.\[([\w,]+)\]"', docker)
    assert set(named.split(",")) <= set(EXTRAS)
    assert {"server", "postgres"} <= set(named.split(","))


def test_prometheus_asks_a_route_that_is_there(served: Any) -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
    with served.http(served.key(role="operator")) as http:
        answer = http.get(job["metrics_path"])
        assert answer.status_code == 200
        again = http.get(job["metrics_path"]).text
    assert 'everlong_jobs{state="waiting"}' in again
    for line in again.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+', line), line
    assert job["static_configs"][0]["targets"] == ["server:8080"]


def test_the_health_check_asks_a_route_that_is_there(served: Any) -> None:
    (path,) = re.findall(r"http://127\.0\.0\.1:8080(/[\w/]+)", (DEPLOY / "Dockerfile").read_text("utf-8"))
    with served.http() as http:
        assert http.get(path).status_code == 200


def test_the_unit_is_well_formed_and_confined() -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    unit.read_string((DEPLOY / "everlong.service").read_text("utf-8"))
    service = unit["Service"]
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert "127.0.0.1" in service["ExecStart"]
