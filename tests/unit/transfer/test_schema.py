"""The schema that is published is the one that is enforced."""

from __future__ import annotations

import json
from pathlib import Path

from everlong.transfer import json_schema

SCHEMA = Path(__file__).parents[3] / "docs" / "export.schema.json"


def test_the_published_schema_is_the_one_in_force() -> None:
    assert json.loads(SCHEMA.read_text("utf-8")) == json.loads(json.dumps(json_schema()))
