"""Operations on one scope behind a server, with the signatures of :class:`~everlong.memory.ScopedMemory`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from everlong import records
from everlong.client.decode import decode
from everlong.client.files import RemoteFiles, RemoteSkills
from everlong.errors import InvalidInput
from everlong.read.explain import Explanation, Replay
from everlong.records import (
    Added,
    Context,
    Entry,
    ExtractionRecord,
    Fact,
    FactStatus,
    Forgotten,
    Job,
    Message,
    Page,
    Profile,
    Proposal,
    ProposalKind,
    Query,
    Recall,
    Receipt,
    Remembered,
    Scope,
    Session,
    Topic,
    TopicForgotten,
    Trace,
    Upkept,
    Usage,
    ValueReport,
)
from everlong.records.plain import plain
from everlong.write.forget import THRESHOLD

if TYPE_CHECKING:
    from everlong.client.client import Client

__all__ = ["RemoteInbox", "RemoteMemory", "RemoteUpkeep"]

_TURN: Final = (
    "role type content id name speaker created_at timestamp origin metadata additional_kwargs tool_calls "
    "invalid_tool_calls function_call"
).split()
"""What of a message goes over the wire; the server decides what of it is kept."""


class RemoteMemory:
    """Memory as the key's owner sees it from one scope. Each operation means what its namesake of
    :class:`~everlong.memory.ScopedMemory` means, and raises the same errors."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client, self.scope = client, scope

    def _call(self, kind: Any, method: str, path: str, **given: Any) -> Any:
        return decode(kind, self._client.call(method, path, scope=self.scope, **given))

    def _items(self, record: Any, where: str, /, **query: Any) -> Any:
        told = self._client.call("GET", where, scope=self.scope, query=query)
        return decode(tuple[record, ...], told["items"])

    @property
    def inbox(self) -> RemoteInbox:
        """What waits for review here."""
        return RemoteInbox(self)

    @property
    def files(self) -> RemoteFiles:
        """Memory files visible from here."""
        return RemoteFiles(self._call, self._items)

    @property
    def skills(self) -> RemoteSkills:
        """Procedures visible from here."""
        return RemoteSkills(self._call)

    # ------------------------------------------------------------------------------------------------ conversation

    def add(self, messages: Iterable[Any], *, idempotency_key: str = "") -> Added:
        """Keeps what was said."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        body = {"messages": [_turn(index, each) for index, each in enumerate(messages)]}
        added: Added = self._call(Added, "POST", "/messages", body=body, headers=headers)
        return added

    def messages(self, *, limit: int = 50) -> tuple[Message, ...]:
        """The latest messages, oldest first."""
        found: tuple[Message, ...] = self._items(Message, "/messages", limit=limit)
        return found

    def sessions(self, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        """The user's conversations, latest first."""
        return self._page(Session, "/sessions", cursor=cursor, limit=limit)

    def _page(self, record: Any, path: str, /, **query: Any) -> Page[Any]:
        found: Page[Any] = self._call(Page[record], "GET", path, query=query)
        return found

    def flush(self) -> int:
        """Makes the work that waits here due now."""
        return int(self._client.call("POST", "/flush", scope=self.scope)["jobs"])

    def clear(self) -> int:
        """Drops the work that waits here."""
        return int(self._client.call("POST", "/clear", scope=self.scope)["conversations"])

    # --------------------------------------------------------------------------------------------------- questions

    def recall(self, question: str | Query, *, trace: bool = False, **filters: Any) -> Recall:
        """What memory holds on a question."""
        recall: Recall = self._call(Recall, "POST", "/recall", body={**_question(question, filters), "trace": trace})
        return recall

    def context(
        self,
        question: str | Query | None = None,
        *,
        budget: int | None = None,
        preset: str | None = None,
        format: str | None = None,  # noqa: A002 - the word for it
        max_messages: int | None = None,
        max_tokens: int | None = None,
        time_window: str | timedelta | None = None,
        files: Sequence[str] | None = None,
        trace: bool = False,
        **filters: Any,
    ) -> Context:
        """A block for the agent's prompt. Presets and formats are those of the server, by name."""
        if isinstance(time_window, timedelta):
            time_window = f"{time_window.total_seconds():f}s"
        options = {
            "budget": budget,
            "preset": preset,
            "format": format,
            "max_messages": max_messages,
            "max_tokens": max_tokens,
            "time_window": time_window,
            "files": files,
        }
        given = {name: plain(value) for name, value in options.items() if value is not None}
        asked = {} if question is None else _question(question, {})
        body = {**asked, **_filters(filters), **given, "trace": trace}
        context: Context = self._call(Context, "POST", "/context", body=body)
        return context

    def explain(self, trace_id: str) -> Trace:
        """Why a question found what it found."""
        trace: Trace = self._call(Trace, "GET", f"/traces/{_name(trace_id)}")
        return trace

    def traces(self, *, limit: int = 20) -> tuple[Trace, ...]:
        """The latest traces that can be explained here, newest first."""
        found: tuple[Trace, ...] = self._items(Trace, "/traces", limit=limit)
        return found

    def explanation(self, trace_id: str) -> Explanation:
        """:meth:`explain` as a person reads it."""
        told: Explanation = self._call(Explanation, "GET", f"/traces/{_name(trace_id)}/explanation")
        return told

    def replay(self, trace_id: str, **changes: Any) -> Replay:
        """Asks the question of a trace again with other settings, and compares."""
        path = f"/traces/{_name(trace_id)}/replay"
        replay: Replay = self._call(Replay, "POST", path, body=_filters(changes))
        return replay

    # ------------------------------------------------------------------------------------------ facts and profile

    def remember(
        self, content: str, *, category: str = "context", confidence: float = 1.0, pinned: bool = False
    ) -> Remembered:
        """Stores one fact."""
        body = {"content": content, "category": category, "confidence": confidence, "pinned": pinned}
        remembered: Remembered = self._call(Remembered, "POST", "/facts", body=body)
        return remembered

    def facts(
        self,
        *,
        status: FactStatus | None = "active",
        categories: Sequence[str] = (),
        cursor: str = "",
        limit: int = 100,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> Page[Fact]:
        """Facts visible from here, newest first."""
        query = {"status": status or "any", "category": list(categories), "cursor": cursor, "limit": limit}
        return self._page(Fact, "/facts", **query, as_of=plain(as_of), valid_at=plain(valid_at))

    def fact(self, fact_id: str) -> Fact:
        """One fact."""
        fact: Fact = self._call(Fact, "GET", f"/facts/{_name(fact_id)}")
        return fact

    def history(self, fact_id: str) -> tuple[Fact, ...]:
        """Every version of a fact, oldest first."""
        found: tuple[Fact, ...] = self._items(Fact, f"/facts/{_name(fact_id)}/history")
        return found

    def revise(self, fact_id: str, *, expected: int | None = None, **changes: Any) -> Fact:
        """Changes a fact."""
        body = {**plain(changes), "expected_version": expected}
        fact: Fact = self._call(Fact, "PATCH", f"/facts/{_name(fact_id)}", body=body)
        return fact

    def forget(self, fact_id: str, *, reason: str = "asked to forget") -> Forgotten:
        """Retires one fact, and says where else it is told."""
        path = f"/facts/{_name(fact_id)}"
        forgotten: Forgotten = self._call(Forgotten, "DELETE", path, query={"reason": reason})
        return forgotten

    def restore(self, fact_id: str, *, reason: str = "asked to restore") -> Fact:
        """Makes a retired fact active again."""
        fact: Fact = self._call(Fact, "POST", f"/facts/{_name(fact_id)}/restore", body={"reason": reason})
        return fact

    def profile(self, *, as_of: datetime | None = None) -> Profile:
        """The profile, as it is or as it stood at a time."""
        profile: Profile = self._call(Profile, "GET", "/profile", query={"as_of": plain(as_of)})
        return profile

    def update_profile(
        self,
        *,
        sections: Mapping[str, str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        expected: int | None = None,
    ) -> Profile:
        """Sets sections and attributes."""
        body = {"sections": dict(sections or {}), "attributes": plain(dict(attributes or {}))}
        profile: Profile = self._call(Profile, "PATCH", "/profile", body={**body, "expected_version": expected})
        return profile

    # --------------------------------------------------------------------------------------------------- oversight

    def jobs(self) -> tuple[Job, ...]:
        """Work that waits, runs or was parked."""
        found: tuple[Job, ...] = self._items(Job, "/jobs")
        return found

    def retry(self, job_id: str) -> Job:
        """Lets a parked job run again."""
        job: Job = self._call(Job, "POST", f"/jobs/{_name(job_id)}/retry")
        return job

    def journal(self, *, target: str = "", action: str = "", cursor: str = "", limit: int = 100) -> Page[Entry]:
        """Who changed what and why, newest first."""
        return self._page(Entry, "/journal", target=target, action=action, cursor=cursor, limit=limit)

    def extractions(self, *, cursor: str = "", limit: int = 100) -> Page[ExtractionRecord]:
        """What every extraction read, answered, decided and cost."""
        return self._page(ExtractionRecord, "/extractions", cursor=cursor, limit=limit)

    def extraction(self, record_id: str) -> ExtractionRecord:
        """One extraction."""
        record: ExtractionRecord = self._call(ExtractionRecord, "GET", f"/extractions/{_name(record_id)}")
        return record

    def usage(self, *, since: datetime | None = None) -> Usage:
        """What extraction cost."""
        usage: Usage = self._call(Usage, "GET", "/usage", query={"since": plain(since)})
        return usage

    @property
    def upkeep(self) -> RemoteUpkeep:
        """What keeps this memory small and true."""
        return RemoteUpkeep(self)

    def forget_preview(self, topic: str, *, threshold: float = THRESHOLD) -> Topic:
        """Everything that tells of a topic."""
        body = {"topic": topic, "threshold": threshold}
        told: Topic = self._call(Topic, "POST", "/forget/preview", body=body)
        return told

    def forget_topic(
        self,
        topic: str,
        refs: Sequence[str],
        *,
        threshold: float = THRESHOLD,
        erase: bool = False,
        reason: str = "asked to forget a topic",
    ) -> TopicForgotten:
        """Takes out what was confirmed."""
        body = {"topic": topic, "refs": list(refs), "threshold": threshold, "erase": erase, "reason": reason}
        forgotten: TopicForgotten = self._call(TopicForgotten, "POST", "/forget", body=body)
        return forgotten

    def erase(self) -> Receipt:
        """Removes everything kept here for good."""
        receipt: Receipt = self._call(Receipt, "POST", "/erase", body={"confirm": True})
        return receipt


class RemoteInbox:
    """What waits for review behind a server."""

    def __init__(self, memory: RemoteMemory) -> None:
        self._memory = memory

    def list(self, *, kind: ProposalKind | None = None, cursor: str = "", limit: int = 100) -> Page[Proposal]:
        """What waits, newest first."""
        return self._memory._page(Proposal, "/inbox", kind=kind, cursor=cursor, limit=limit)

    def approve(self, proposal_id: str, *, content: str | None = None) -> Any:
        """Lets it take effect; returns what changed."""
        path = f"/inbox/{_name(proposal_id)}/approve"
        told = self._memory._call(dict, "POST", path, body={"content": content})
        kind = getattr(records, told["record"], None)
        return decode(kind, told["result"]) if kind else told["result"]

    def reject(self, proposal_id: str, *, reason: str = "rejected in review") -> None:
        """Takes it out."""
        self._memory._call(None, "POST", f"/inbox/{_name(proposal_id)}/reject", body={"reason": reason})


class RemoteUpkeep:
    """Each operation means what its namesake of :class:`~everlong.memory.Upkeep` means."""

    def __init__(self, memory: RemoteMemory) -> None:
        self._memory = memory

    def preview(self) -> Upkept:
        """What a run would do now."""
        told: Upkept = self._memory._call(Upkept, "GET", "/upkeep/preview")
        return told

    def run(self) -> Upkept:
        """Does what is due now."""
        done: Upkept = self._memory._call(Upkept, "POST", "/upkeep")
        return done

    def report(self) -> ValueReport:
        """What the facts are worth, and suggestions."""
        report: ValueReport = self._memory._call(ValueReport, "GET", "/upkeep/report")
        return report

    def apply(self, suggestion_id: str) -> tuple[Fact, ...]:
        """Follows one suggestion of the report."""
        told = self._memory._call(dict, "POST", f"/upkeep/suggestions/{_name(suggestion_id)}")
        facts: tuple[Fact, ...] = decode(tuple[Fact, ...], told["items"])
        return facts


def _name(identifier: str) -> str:
    return quote(identifier, safe="")


def _turn(index: int, raw: object) -> dict[str, Any]:
    """A message in any of the shapes that :meth:`add` takes, as a JSON object."""
    if isinstance(raw, Mapping):
        nested = raw.get("data")
        given = {**nested, "type": raw.get("type")} if isinstance(nested, Mapping) and "content" not in raw else raw
    elif isinstance(raw, (tuple, list)) and len(raw) == 2:  # noqa: PLR2004 - role and text
        given = dict(zip(("role", "content"), raw, strict=True))
    elif hasattr(raw, "content"):
        given = {name: getattr(raw, name, None) for name in _TURN}
    else:
        raise InvalidInput(f"message {index} is of a shape that is not known ({type(raw).__name__})")
    return {name: plain(given[name]) for name in _TURN if given.get(name) is not None}


def _question(question: str | Query, filters: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(question, Query):
        usual = Query(text="")
        held = {f.name: getattr(question, f.name) for f in fields(Query) if f.name != "text"}
        filters = {name: value for name, value in held.items() if value != getattr(usual, name)}
        return {"question": question.text, **_filters(filters)}
    if not isinstance(question, str):
        raise InvalidInput(f"a question must be text, not {type(question).__name__}")
    return {"question": question, **_filters(filters)}


def _filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in filters.items()}
