"""Settings, and the one place that chooses concrete parts and puts them together."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from everlong import telemetry
from everlong.errors import ConfigError, InvalidInput
from everlong.files.keeper import FileLimits, Keeper
from everlong.files.paths import check_path
from everlong.memory import Memory, Parts
from everlong.models import open_chat_model, open_embedder
from everlong.policy import READS, Rule, Rules, guard
from everlong.protocols import (
    ChatModel,
    Clock,
    Embedder,
    Extractor,
    Middleware,
    NewId,
    Policy,
    Store,
    TokenCounter,
    Transaction,
)
from everlong.read.compose import Shares
from everlong.read.counter import open_counter
from everlong.read.formats import format_of
from everlong.read.presets import ALWAYS_LOADED, Preset, preset_of
from everlong.read.reader import Reader
from everlong.records import CATEGORIES, Job, Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.telemetry.observed import ObservedStore, observe, observed_tasks
from everlong.telemetry.spans import tracing
from everlong.transfer import Gate
from everlong.workers import Retry, Worker
from everlong.workers.schedule import UpkeepSettings
from everlong.write.apply import UPKEEP, Applier
from everlong.write.background import Background
from everlong.write.builtin import BuiltinExtractor
from everlong.write.forget import Forgetter
from everlong.write.llm import LLMExtractor
from everlong.write.reconcile import Gates
from everlong.write.redact import Redactor, redaction
from everlong.write.review import Reviewer
from everlong.write.signals import load as load_signals
from everlong.write.split import SplitExtractor
from everlong.write.upkeep import Upkeep
from everlong.write.writer import Debounce, Limits, Writer

if TYPE_CHECKING:
    from everlong.telemetry.metrics import Instruments

__all__ = ["Settings", "build", "load_settings", "new_id", "now", "open_memory"]


def now() -> datetime:
    """The time, aware, in UTC."""
    return datetime.now(UTC)


class _Ids:
    """Ids that sort by the time they were made: 48 bits of milliseconds, a counter within them, 64 random bits."""

    def __init__(self) -> None:
        self._lock, self._last = Lock(), 0

    def __call__(self, prefix: str, /) -> str:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            stamp = self._last
        return f"{prefix}_{stamp:013x}{secrets.token_hex(6)}"


new_id = _Ids()
"""The default maker of ids, such as ``fact_0642f3a1b2c3d9f0a1b2c3d4``."""


class Settings(UpkeepSettings):
    """All that can be set; from arguments, then ``EVERLONG_…`` variables, then ``everlong.toml`` in this folder."""

    model_config = SettingsConfigDict(
        env_prefix="EVERLONG_", toml_file="everlong.toml", extra="forbid", validate_default=True
    )

    url: str = Field(
        default="sqlite:///everlong.db", description="Where memory is kept: sqlite:///path, sqlite://, postgresql://…"
    )
    embedder: str = Field(
        default="use", description="use (built in), e5, openai:MODEL, or none for search by words only"
    )
    extractor: Literal["builtin", "llm"] = Field(
        default="builtin", description="builtin needs no model; llm uses model"
    )
    model: str = Field(default="", description="chat model for extraction and chat, such as openai:gpt-4o-mini")
    extraction_model: str = Field(
        default="", description="a chat model of its own, smaller perhaps, for extraction; default: model"
    )
    extraction_strategy: Literal["single", "split"] = Field(
        default="single", description="single: one call for all; split: many small calls, for small models"
    )
    prompts_dir: Path | None = Field(
        default=None, description="a folder of prompts (update.md, facts.md …) that replace the built-in ones"
    )
    daily_tokens: int = Field(
        default=0, ge=0, description="tokens that extraction may use for one user in a day (UTC); 0: no bound"
    )
    base_url: str | None = Field(default=None, description="an OpenAI-compatible endpoint; default: the SDK's")
    api_key: str | None = Field(default=None, repr=False, description="its key; default: the SDK's own variables")
    debounce_seconds: float = Field(default=30, ge=1, le=300, description="extraction waits for so long a pause")
    max_wait_seconds: float = Field(default=300, ge=1, description="but never longer than this")
    batch_messages: int = Field(default=20, ge=1, description="so many new messages make extraction due at once")
    batch_tokens: int = Field(default=4000, ge=1, description="so many tokens in them make it due too")
    max_waiting_messages: int = Field(
        default=10_000, ge=1, description="messages of one user that may wait for extraction before more are refused"
    )
    max_waiting_jobs: int = Field(
        default=10_000, ge=1, description="jobs of one organisation that may wait before more are refused"
    )
    confidence_threshold: float = Field(
        default=0.7, ge=0, le=1, description="candidates below it are not stored as facts"
    )
    below_threshold: Literal["hold", "downweight", "drop"] = Field(default="hold", description="what happens to those")
    max_facts: int = Field(
        default=100, ge=10, le=500, description="facts kept at one scope; the least valuable is retired"
    )
    eviction: Literal["value", "confidence"] = Field(
        default="value",
        description="by what: value (confidence, confirmations, use, age), or confidence alone as DeerFlow does",
    )
    review_categories: frozenset[str] = Field(
        default=frozenset(), description="facts of these categories always wait for a person"
    )
    categories: tuple[str, ...] = Field(default=(), description="categories of your own, beside the built-in ones")
    max_injection_tokens: int = Field(default=2000, ge=100, le=8000, description="default budget of a prompt block")
    token_counter: str = Field(
        default="estimate", description="what tokens are counted by: estimate (offline), or tiktoken:cl100k_base …"
    )
    preset: str = Field(default="default", description="how blocks are filled: default, deerflow, vector, three-layer")
    format: str = Field(
        default="", description="how they look: deerflow, marked, layers, json …; default: the preset's"
    )
    always_loaded: tuple[str, ...] = Field(default=ALWAYS_LOADED, description="memory files shown in every block")
    static_share: float = Field(default=0.5, ge=0, le=1, description="of a block, what profile and files take at most")
    facts_share: float = Field(default=0.6, ge=0, le=1, description="of the rest, what facts take beside conversation")
    correction_tokens: int = Field(default=500, ge=0, description="tokens that corrections are sure of in a block")
    max_message_chars: int = Field(default=1_000_000, ge=1000, description="a longer message is refused")
    max_file_bytes: int = Field(default=1_048_576, ge=1024, description="a larger memory file is refused")
    max_files: int = Field(default=1000, ge=1, description="memory files kept at one scope; more are refused")
    max_file_versions: int = Field(default=100, ge=1, description="earlier versions kept of one memory file")
    redact: Literal["secrets", "personal", "none"] = Field(
        default="secrets", description="secrets, or personal data too, are taken out of text before it is stored"
    )
    signing_key: str = Field(default="", repr=False, description="what receipts of erasures are signed with (HMAC)")
    signals_file: Path | None = Field(default=None, description="patterns of your own for signals, as TOML")
    rules: tuple[Rule, ...] = Field(
        default=(), description="who may do what, asked before the default rules: see docs/rights.md"
    )
    zone: str = Field(default="UTC", description="the users' time zone, for dates in words")
    worker: Literal["thread", "none"] = Field(
        default="thread", description="do background work in this process, or leave it to everlong worker"
    )
    job_attempts: int = Field(default=5, ge=1, description="failed work is parked after so many tries")
    lease_seconds: float = Field(default=60, gt=0, description="work of a worker that died is taken over after this")
    worker_threads: int = Field(default=2, ge=1, description="jobs that one process does at once")
    audit_chain: bool = Field(default=False, description="chain journal entries, for everlong audit verify")
    metrics: bool = Field(default=False, description="measure for Prometheus (extra metrics); see everlong metrics")
    trace_sample: float = Field(
        default=0.0, ge=0, le=1, description="share of questions whose trace is stored, for everlong explain"
    )
    index_bytes: int = Field(default=256 * 1024 * 1024, ge=1024 * 1024, description="memory for the search cache")
    rate_limit: str = Field(
        default="600/minute", description="requests that the server takes with one credential; empty: no bound"
    )
    max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1024, description="a larger request is refused")
    cors_origins: tuple[str, ...] = Field(default=(), description="web pages that may call the server from a browser")
    jwt_keys: str = Field(
        default="", description="what tokens are checked with: a JWKS address, or a file with a public key or secret"
    )
    jwt_audience: str = Field(default="", description="whom a token must be meant for; needed with jwt_keys")
    jwt_issuer: str = Field(default="", description="who must have issued it; empty: anyone with the key")
    jwt_claims: dict[str, str] | None = Field(
        default=None,
        description="claims of org, user, role, agent and groups, where they differ from the usual",
    )

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            msg = f"unknown time zone {zone!r}; use a name such as Asia/Shanghai"
            raise ValueError(msg) from None
        return zone

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then the file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(**values: Any) -> Settings:
    """The settings, with ``values`` before those of the environment and of ``everlong.toml``.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    try:
        return Settings(**values)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors()]
        msg = "wrong settings: " + "; ".join(lines)
        raise ConfigError(msg) from None
    except ValueError as error:
        msg = f"everlong.toml or an EVERLONG_ variable cannot be read: {error}"
        raise ConfigError(msg) from None


def build(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    chat_model: ChatModel | None = None,
    extractor: Extractor | None = None,
    policy: Policy | None = None,
    counter: TokenCounter | None = None,
    clock: Clock = now,
    new_id: NewId = new_id,
) -> Memory:
    """A memory from settings; parts given here replace those that the settings name.

    Raises:
        ConfigError: a setting names something that is not there.
        StoreError: the store cannot be opened.
    """
    if embedder is None:
        embedder = open_embedder(settings.embedder, base_url=settings.base_url, api_key=settings.api_key)
    preset = _preset(settings)
    counter = counter or open_counter(settings.token_counter)
    extractor = extractor or _extractor(settings, chat_model)
    store, instruments = _store(settings, clock, new_id)
    index = _index(settings, embedder)
    shared: dict[str, Any] = {"store": store, "embedder": embedder, "clock": clock, "new_id": new_id}
    gates = _gates(settings, embedder, preset.duplicate)
    applier = Applier(index=index, gates=gates, upkeep_at=settings.schedule().next, **shared)
    background = Background(
        applier=applier,
        index=index,
        extractor=extractor,
        zone=settings.zone,
        daily_tokens=settings.daily_tokens,
        on_record=instruments.extraction if instruments else lambda _: None,
        **shared,
    )
    writer = _writer(settings, applier, counter=counter, **shared)
    reader = Reader(index=index, counter=counter, **shared)
    redact = Redactor(settings.redact).value
    reviewer = Reviewer(applier=applier, redact=redact, **shared)
    upkeep = _upkeep(settings, applier, gates, chat_model, **shared)
    by_hand: dict[str, Any] = {"store": store, "embedder": embedder, "clock": clock}
    uses = telemetry.Uses()
    tasks = {"extract": background.extract, "embed": background.embed, UPKEEP: upkeep.task}
    worker = _worker(settings, store, observed_tasks(tasks, instruments), uses, clock)
    metrics = telemetry.Metrics()
    onion = _onion(settings, policy or Rules(settings.rules), reviewer, store, metrics, clock, new_id)
    return Memory(
        Parts(
            store=store,
            index=index,
            embedder=embedder,
            extractor=extractor.name,
            writer=writer,
            reviewer=reviewer,
            forgetter=Forgetter(recall=reader.recall, index=index, applier=applier, **by_hand),
            reader=reader,
            files=_keeper(settings, store, clock, new_id, applier.enqueue_embedding if embedder else None),
            upkeep=upkeep,
            gate=_gate(settings, redact),
            worker=worker,
            middleware=[observe(instruments), *onion],
            instruments=instruments,
            metrics=metrics,
            traces=telemetry.TraceLog(store, sample=settings.trace_sample, random=random.random, redact=redact),
            uses=uses,
            clock=clock,
            new_id=new_id,
            on_recall=telemetry.log_recall,
            background=settings.worker == "thread",
            budget=settings.max_injection_tokens,
            preset=preset,
            zone=settings.zone,
        )
    )


def _store(settings: Settings, clock: Clock, new_id: NewId) -> tuple[Store, Instruments | None]:
    """The store, and the metrics of this memory if they are wished; it is looked at only where somebody measures."""
    store = open_store(settings.url, clock=clock, new_id=new_id, chain=settings.audit_chain)
    if not settings.metrics and not tracing():
        return store, None
    observed = ObservedStore(store)
    if settings.metrics:
        from everlong.telemetry.metrics import Instruments

        observed.instruments = Instruments(observed, clock)
    return observed, observed.instruments


def _worker(
    settings: Settings, store: Store, tasks: Mapping[str, Callable[[Job], None]], uses: telemetry.Uses, clock: Clock
) -> Worker:
    def idle() -> None:
        if uses.full:
            uses.store(store)

    return Worker(
        store,
        tasks,
        clock=clock,
        name=f"{os.uname().nodename}:{os.getpid()}:{secrets.token_hex(3)}",
        random=random.random,
        retry=Retry(attempts=settings.job_attempts),
        lease=timedelta(seconds=settings.lease_seconds),
        threads=settings.worker_threads,
        idle=idle,
    )


def _onion(
    settings: Settings,
    policy: Policy,
    reviewer: Reviewer,
    store: Store,
    metrics: telemetry.Metrics,
    clock: Clock,
    new_id: NewId,
) -> list[Middleware]:
    """The skins round every operation, the outermost first."""
    return [
        telemetry.audit(store, clock, new_id),
        guard(policy, store, reviewer.hold),
        telemetry.measure(metrics),
        redaction(Redactor(settings.redact), reads=READS, store=store, clock=clock, new_id=new_id),
    ]


def _keeper(
    settings: Settings,
    store: Store,
    clock: Clock,
    new_id: NewId,
    embed: Callable[[Transaction, Scope], None] | None,
) -> Keeper:
    limits = FileLimits(size=settings.max_file_bytes, files=settings.max_files, versions=settings.max_file_versions)
    redact = Redactor(settings.redact).value
    return Keeper(store=store, clock=clock, new_id=new_id, limits=limits, redact=redact, embed=embed)


def _gate(settings: Settings, redact: Callable[[Any], Any]) -> Gate:
    return Gate(
        redact=redact,
        categories=frozenset((*CATEGORIES, *settings.categories)),
        max_chars=settings.max_message_chars,
        max_file=settings.max_file_bytes,
        max_files=settings.max_files,
        check_path=check_path,
    )


def _writer(
    settings: Settings, applier: Applier, *, embedder: Embedder | None, counter: TokenCounter, **shared: Any
) -> Writer:
    return Writer(
        applier=applier,
        embedder=embedder,
        categories=(*CATEGORIES, *settings.categories),
        debounce=_debounce(settings),
        limits=Limits(messages=settings.max_waiting_messages, jobs=settings.max_waiting_jobs),
        count_tokens=counter,
        zone=settings.zone,
        max_chars=settings.max_message_chars,
        signals=load_signals(settings.signals_file) if settings.signals_file else None,
        signing_key=settings.signing_key,
        **shared,
    )


def _debounce(settings: Settings) -> Debounce:
    return Debounce(
        pause=timedelta(seconds=settings.debounce_seconds),
        longest=timedelta(seconds=max(settings.max_wait_seconds, settings.debounce_seconds)),
        messages=settings.batch_messages,
        tokens=settings.batch_tokens,
    )


def _extractor(settings: Settings, chat_model: ChatModel | None) -> Extractor:
    if settings.extractor == "builtin":
        return BuiltinExtractor()
    model = chat_model if chat_model is not None and not settings.extraction_model else _chat_model(settings)
    made = SplitExtractor if settings.extraction_strategy == "split" else LLMExtractor
    return made(model, prompts=settings.prompts_dir, categories=(*CATEGORIES, *settings.categories))


def _chat_model(settings: Settings) -> ChatModel:
    named = settings.extraction_model or settings.model
    if not named:
        msg = "extractor = 'llm' needs a chat model: set model (EVERLONG_MODEL), for example openai:gpt-4o-mini"
        raise ConfigError(msg)
    return open_chat_model(named, base_url=settings.base_url, api_key=settings.api_key)


def _upkeep(settings: Settings, applier: Applier, gates: Gates, chat_model: ChatModel | None, **shared: Any) -> Upkeep:
    """The model that extracts facts looks after them too; where none does, none is asked."""
    named = settings.extraction_model or settings.model
    own = _chat_model(settings) if settings.extractor == "llm" and named and chat_model is None else None
    rules = settings.upkeep_rules(gates.duplicate, daily_tokens=settings.daily_tokens)
    return Upkeep(applier=applier, rules=rules, model=chat_model or own, **shared)


def _index(settings: Settings, embedder: Embedder | None) -> BucketIndex:
    return BucketIndex(
        model=embedder.model if embedder else "",
        dimensions=embedder.dimensions if embedder else 0,
        budget_bytes=settings.index_bytes,
    )


def _preset(settings: Settings) -> Preset:
    try:
        preset = preset_of(settings.preset)
        look = format_of(settings.format or preset.format)
    except InvalidInput as error:
        raise ConfigError(str(error)) from None
    shares = Shares(static=settings.static_share, facts=settings.facts_share, corrections=settings.correction_tokens)
    return replace(preset, format=look, files=settings.always_loaded if preset.files else (), shares=shares)


def _gates(settings: Settings, embedder: Embedder | None, duplicate: float | None) -> Gates:
    return Gates(
        confidence_threshold=settings.confidence_threshold,
        below=settings.below_threshold,
        max_facts=settings.max_facts,
        eviction=settings.eviction,
        review_categories=settings.review_categories,
        duplicate=duplicate or (embedder.calibration.duplicate if embedder else 1.0),
        categories=(*CATEGORIES, *settings.categories),
    )


def open_memory(url: str | None = None, /, **settings: Any) -> Memory:
    """Opens memory at ``url`` (default: the setting ``url``, ``sqlite:///everlong.db``); the store is made if new.

    ``settings`` are the fields of :class:`Settings`.

    Raises:
        ConfigError: a setting is unknown or wrong.
        StoreError: the store cannot be opened.
    """
    if url is not None:
        settings["url"] = url
    return build(load_settings(**settings))
