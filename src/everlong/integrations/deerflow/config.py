"""DeerFlow's ``memory:`` settings, old and new, as settings of ours."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from everlong.config import Settings
from everlong.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CORE_CATEGORIES", "MemoryConfig"]

CORE_CATEGORIES: Final = ("identity", "constraint", "decision", "other")
"""DeerFlow's categories that are not built in here."""
_log = logging.getLogger("everlong.deerflow")
_OTHER: Final = frozenset(
    "file_lock_timeout_seconds retrieval_adapter staleness_review_enabled staleness_age_days staleness_min_candidates "
    "staleness_max_removals staleness_protected_categories consolidation_enabled consolidation_min_facts "
    "consolidation_max_groups consolidation_max_sources extraction_callback watermark_max_keys patterns_dir "
    "guaranteed_categories should_keep_hidden_message host_llm trace_context_manager".split()
)
"""What DeerFlow's own backend is set with and memory here decides by itself."""


class MemoryConfig(BaseModel):
    """The keys of ``memory:`` in DeerFlow's ``config.yaml`` with its defaults and ranges.

    Fields of :class:`everlong.config.Settings` (``url``, ``embedder``, ``zone`` …) may stand beside them, and win.
    Settings of DeerFlow's own backend that mean nothing here are named in the log; unknown ones are refused.
    """

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    enabled: bool = True
    mode: Literal["middleware", "tool"] = "middleware"
    storage_path: str = Field(default="", description="where DeerFlow's file is; imported when asked, never written")
    debounce_seconds: int = Field(default=30, ge=1, le=300, description="seconds")
    model_name: str | None = Field(default=None, description="chat model for extraction; without one, rules extract")
    max_facts: int = Field(default=100, ge=10, le=500)
    fact_confidence_threshold: float = Field(default=0.7, ge=0.0, le=1.0)
    injection_enabled: bool = True
    max_injection_tokens: int = Field(default=2000, ge=100, le=8000)
    token_counting: Literal["tiktoken", "char"] = "tiktoken"  # noqa: S105 - tokens of text
    shutdown_flush_timeout_seconds: float = Field(default=30, ge=1, le=300, description="seconds")
    manager_class: str = ""
    backend_config: dict[str, Any] = Field(default_factory=dict)
    strict_user_scope: bool = Field(default=False, description="refuse what names no user, in place of user default")
    org: str = Field(default="", description="the organisation whose memory it is")
    queue_max_depth: int = Field(default=1000, ge=0, description="jobs that may wait; 0: no bound")
    fact_eviction_policy: Literal["confidence", "hybrid-v1"] = "confidence"
    guaranteed_token_budget: int = Field(default=500, ge=50, le=2000, description="tokens")
    prompts_dir: str | None = None
    model: dict[str, Any] = Field(default_factory=dict, description="provider, model, api_key, base_url")

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The settings of a ``memory:`` block, or of its ``backend_config`` alone.

        Raises:
            ConfigError: a value is out of its range, or a key is neither DeerFlow's nor ours.
        """
        flat = {**values, **(values.get("backend_config") or {})}
        try:
            made = cls(**flat)
        except ValidationError as error:
            lines = [f"memory.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
            raise ConfigError("; ".join(lines)) from None
        extra = set(made.model_extra or {})
        unknown = sorted(extra - _OTHER - set(Settings.model_fields))
        if unknown:
            raise ConfigError(f"memory.{unknown[0]} is neither a setting of DeerFlow's memory nor of everlong")
        idle = sorted(extra & _OTHER)
        if idle:
            _log.info("settings of DeerFlow's own backend that have no effect here: %s", ", ".join(idle))
        return made

    def settings(self) -> dict[str, Any]:
        """The same as fields of :class:`everlong.config.Settings`."""
        model = self.model.get("model") or self.model_name
        found: dict[str, Any] = {
            "debounce_seconds": self.debounce_seconds,
            "max_wait_seconds": max(300, self.debounce_seconds),
            "max_facts": self.max_facts,
            "confidence_threshold": self.fact_confidence_threshold,
            "max_injection_tokens": self.max_injection_tokens,
            "max_waiting_jobs": self.queue_max_depth or 1_000_000_000,
            "eviction": "confidence" if self.fact_eviction_policy == "confidence" else "value",
            "correction_tokens": self.guaranteed_token_budget,
            "categories": CORE_CATEGORIES,
            "preset": "deerflow",
        }
        if model:
            named = model if ":" in model else f"openai:{model}"
            found |= {"extractor": "llm", "model": named}
        found |= {key: self.model[key] for key in ("base_url", "api_key") if self.model.get(key)}
        if self.prompts_dir:
            found["prompts_dir"] = self.prompts_dir
        given = (self.model_fields_set | set(self.model_extra or {})) & set(Settings.model_fields) - {"model"}
        found |= {name: getattr(self, name) for name in given}
        return found | {"categories": tuple(dict.fromkeys((*CORE_CATEGORIES, *found["categories"])))}
