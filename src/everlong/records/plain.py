"""Records as JSON holds them: one rendering for every face."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A value as JSON can hold it: records as objects, times in ISO form, bytes in base64."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else " ".join(map(str, k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value
