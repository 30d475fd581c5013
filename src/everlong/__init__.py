"""everlong: long-term memory for LLM agents.

Names load on first use, so that importing the package is cheap and starts nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everlong.aio import AsyncMemory
    from everlong.config import Settings, build, open_memory
    from everlong.memory import Memory, ScopedMemory
    from everlong.read.compress import compress_conversation
    from everlong.read.planner import RECALL_TOOL, answer_recall, should_recall, unsure
    from everlong.records import Principal, Query, Scope
    from everlong.write.receipts import verify_receipt

__version__ = "0.1.0"

_HOMES = {
    "AsyncMemory": "everlong.aio",
    "Memory": "everlong.memory",
    "Principal": "everlong.records",
    "Query": "everlong.records",
    "Scope": "everlong.records",
    "ScopedMemory": "everlong.memory",
    "Settings": "everlong.config",
    "build": "everlong.config",
    "open_memory": "everlong.config",
    "RECALL_TOOL": "everlong.read.planner",
    "answer_recall": "everlong.read.planner",
    "compress_conversation": "everlong.read.compress",
    "should_recall": "everlong.read.planner",
    "unsure": "everlong.read.planner",
    "verify_receipt": "everlong.write.receipts",
}

__all__ = [
    "RECALL_TOOL",
    "AsyncMemory",
    "Memory",
    "Principal",
    "Query",
    "Scope",
    "ScopedMemory",
    "Settings",
    "answer_recall",
    "build",
    "compress_conversation",
    "open_memory",
    "should_recall",
    "unsure",
    "verify_receipt",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
