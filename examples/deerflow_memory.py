"""DeerFlow's memory on everlong: what the host does between two conversations, with its document in between.

EXAMPLE_MODEL=openai:gpt-4o-mini python examples/deerflow_memory.py

In DeerFlow itself nothing is called by hand: set memory.manager_class in config.yaml, see docs/deerflow.md.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from everlong.models import open_chat_model

CONFIG = {
    "manager_class": "everlong.integrations.deerflow:EverlongMemoryManager",
    "backend_config": {"url": "sqlite://", "worker": "none"},
}


def load(config: dict[str, Any], **hooks: Any) -> Any:
    """What DeerFlow does with its settings at start."""
    module, _, name = config["manager_class"].partition(":")
    return getattr(import_module(module), name).from_config(config["backend_config"], mode="middleware", **hooks)


def main(model: Any = None) -> None:
    manager = load(CONFIG, host_llm=model or open_chat_model(os.environ["EXAMPLE_MODEL"]))
    said = [
        {"role": "user", "content": "I lead the billing team. Please answer in Chinese."},
        {"role": "assistant", "content": "好的。"},
    ]
    manager.add("monday", said, user_id="ann")
    manager.shutdown_flush(timeout=30)  # learn now; a host that keeps running does it in the background
    print(manager.get_context("ann", thread_id="thursday"))
    for fact in manager.get_memory(user_id="ann")["facts"]:
        print(f"{fact['source']}: {fact['content']}")
    manager.close()


if __name__ == "__main__":
    main()
