"""DeerFlow: its documents, its calls and its plug-in contract over one memory. No code of DeerFlow is needed."""

from everlong.integrations.deerflow.calls import DocumentCalls, MemoryUpdateQueue, MemoryUpdater, StoreMemoryStorage
from everlong.integrations.deerflow.config import MemoryConfig
from everlong.integrations.deerflow.document import apply_document, create_empty_memory, document, revision
from everlong.integrations.deerflow.plugin import (
    EverlongMemoryManager,
    MemoryConflictError,
    MemoryCorruptionError,
    MemoryManagerError,
)
from everlong.integrations.deerflow.prompt import detect_correction, detect_reinforcement, format_memory_for_injection
from everlong.integrations.deerflow.storage import AGENT_NAME_PATTERN, FileMemoryStorage, MemoryStorage

__all__ = [
    "AGENT_NAME_PATTERN",
    "DocumentCalls",
    "EverlongMemoryManager",
    "FileMemoryStorage",
    "MemoryConfig",
    "MemoryConflictError",
    "MemoryCorruptionError",
    "MemoryManagerError",
    "MemoryStorage",
    "MemoryUpdateQueue",
    "MemoryUpdater",
    "StoreMemoryStorage",
    "apply_document",
    "create_empty_memory",
    "detect_correction",
    "detect_reinforcement",
    "document",
    "format_memory_for_injection",
    "revision",
]
