"""Export, import, export gives the same bytes on both dialects, whatever was kept."""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong.protocols import Indexed
from everlong.records import (
    CATEGORIES,
    COPY_KINDS,
    SECTIONS,
    Earlier,
    Entry,
    Evidence,
    ExtractionRecord,
    Fact,
    Kept,
    MemoryFile,
    Message,
    Outcome,
    Profile,
    Proposal,
    Scope,
    Section,
    Session,
    Skipped,
    Usage,
)
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.transfer import Gate, Loader, write
from everlong.transfer.format import encode, json_schema, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols import Store

ANN = Scope(org="acme", user="安 ann")
GATE = Gate(
    redact=lambda value: value,
    categories=frozenset(CATEGORIES),
    max_chars=10_000,
    max_file=10_000,
    check_path=lambda path: path,
    operator=True,
)

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda t: any(c.isalnum() for c in t)
)
names = st.text("ab中-_.:/", min_size=1, max_size=6)
times = st.integers(0, 2**52).map(lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
shares = st.floats(0, 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
metadata = st.dictionaries(texts, json_values, max_size=3)
homes = st.sampled_from([ANN, Scope(org="acme", user="安 ann", agent="coder")])


def facts(version: int) -> st.SearchStrategy[Fact]:
    return st.builds(
        Fact,
        id=st.just(""),
        scope=st.just(ANN),
        content=texts,
        created_at=times,
        updated_at=times,
        category=st.sampled_from(CATEGORIES),
        confidence=shares,
        importance=shares,
        pinned=st.booleans(),
        origin=st.just("user"),
        trust=st.just(0.9) | st.just(0.2),
        evidence=st.lists(st.builds(Evidence, message_id=names, quote=texts, session=names), max_size=2).map(tuple),
        status=st.sampled_from(["active", "held", "retired"]),
        version=st.just(version),
        uses=st.integers(0, 9),
        last_used_at=st.none() | times,
        valid_from=st.none() | times,
        retired_at=st.none() | times,
        reason=texts,
        superseded_by=names,
        metadata=metadata,
    )


@st.composite
def memories(draw: st.DrawFn) -> list[Kept]:
    """Some records of every kind, with history."""
    found: list[Kept] = []
    for name in draw(st.lists(names, unique=True, max_size=3)):
        home = draw(homes)
        for version in (1, 2):
            fact = replace(draw(facts(version)), id=name, scope=home)
            found.append(fact if version == 2 else Earlier(record=fact, ended=draw(times)))
    position = 0
    for name in draw(st.lists(names, unique=True, max_size=3)):
        begun = draw(times)
        found.append(
            Session(
                scope=Scope(org=ANN.org, user=ANN.user, session=name),
                created_at=begun,
                updated_at=begun + timedelta(hours=1),
                extracted=draw(st.integers(0, 3)),
            )
        )
        for number in range(draw(st.integers(0, 3))):
            position += draw(st.integers(1, 3))
            found.append(
                Message(
                    id=f"m{number}",
                    scope=ANN,
                    session=name,
                    role=draw(st.sampled_from(["user", "assistant"])),
                    content=draw(texts),
                    created_at=draw(times),
                    position=position,
                    signals=draw(st.lists(names, max_size=2).map(tuple)),
                    metadata=draw(metadata),
                )
            )
    for path in draw(st.lists(names.map(lambda n: f"/memories/{n}"), unique=True, max_size=2)):
        for version in (1, 2):
            file = MemoryFile(
                scope=ANN,
                path=path,
                content=draw(st.binary(max_size=20) | texts.map(str.encode)),
                created_at=draw(times),
                updated_at=draw(times),
                version=version,
                read_only=draw(st.booleans()),
                metadata=draw(metadata),
            )
            found.append(file if version == 2 else Earlier(record=file, ended=draw(times)))
    found += draw(st.lists(st.builds(profile, times, texts, metadata), max_size=1))
    found += draw(st.lists(st.builds(proposal, texts, times, metadata), max_size=1))
    found += draw(st.lists(st.builds(entry, texts, times, metadata), max_size=1))
    found += draw(st.lists(st.builds(extraction, texts, times), max_size=1))
    return found


def profile(at: datetime, said: str, attributes: dict[str, object]) -> Kept:
    sections = {next(iter(SECTIONS)): Section(summary=said, updated_at=at)}
    return Profile(scope=ANN, sections=sections, attributes=attributes, version=3, updated_at=at)


def proposal(reason: str, at: datetime, payload: dict[str, object]) -> Kept:
    return Proposal(id="p", scope=ANN, kind="call", target="t", reason=reason, by="b", created_at=at, payload=payload)


def entry(reason: str, at: datetime, payload: dict[str, object]) -> Kept:
    return Entry(id="e", at=at, scope=ANN, by="b", action="add", reason=reason, after=3, payload=payload)


def extraction(raw: str, at: datetime) -> Kept:
    return ExtractionRecord(
        id="x",
        scope=ANN,
        at=at,
        extractor="b",
        raw=raw,
        messages=("m0",),
        decisions=(Outcome(kind="add", reason="r", content=raw),),
        skipped=(Skipped(reason="odd", raw=raw),),
        usage=Usage(calls=1, input_tokens=2),
        milliseconds=0.5,
    )


def filled(store: Store, records: list[Kept]) -> None:
    with store.write() as tx:
        for record in records:
            needs = Indexed(terms=[]) if isinstance(record, Fact | Message) else None
            assert tx.copies.put(kind_of(record), record, needs)


def exported(store: Store, scope: Scope = ANN) -> bytes:
    out = io.BytesIO()
    with store.read() as tx:
        write(tx, scope, out, at=datetime(2026, 1, 1, tzinfo=UTC), audit=True)
    return out.getvalue()


def taken(store: Store, data: bytes) -> None:
    with store.write() as tx:
        found = Loader(io.BytesIO(data), ANN, GATE).merge(tx).result
        assert found.count("new") == data.count(b"\n") - 2, found


@pytest.fixture(scope="module")
def lite() -> Iterator[tuple[Store, Store]]:
    """Two stores of the smaller dialect."""
    with closing(_opened("sqlite://")) as first, closing(_opened("sqlite://")) as second:
        yield first, second


def _opened(url: str) -> Store:
    return open_store(url, clock=FakeClock(tick=0.001), new_id=CountingIds())


def emptied(*stores: Store) -> None:
    for store in stores:
        with store.write() as tx:
            tx.erase(Scope())


@settings(max_examples=25, deadline=None)
@given(records=memories())
def test_what_comes_back_is_what_went_out(lite: tuple[Store, Store], records: list[Kept]) -> None:
    first, second = lite
    emptied(first, second)
    filled(first, records)
    out = exported(first)
    assert out.count(b"\n") == len(records) + 2
    taken(second, out)
    assert exported(second) == out
    with second.write() as tx:
        again = Loader(io.BytesIO(out), ANN, GATE).merge(tx).result
    assert again.count("same") == len(records)
    assert again.count("conflicting") == again.count("new") == 0


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_both_dialects_give_the_same_bytes(lite: tuple[Store, Store], postgres_url: str, data: st.DataObject) -> None:
    first, _ = lite
    with closing(_opened(postgres_url)) as big:
        for _ in range(3):
            emptied(first, big)
            filled(first, data.draw(memories()))
            out = exported(first)
            taken(big, out)
            assert exported(big) == out


@settings(max_examples=25, deadline=None)
@given(records=memories())
def test_every_line_is_as_the_schema_says(records: list[Kept]) -> None:
    schema = json_schema()
    check = jsonschema.Draft202012Validator(schema)
    for record in records:
        line = encode(kind_of(record), record)
        assert line["type"] in COPY_KINDS
        check.validate(line)
        with pytest.raises(jsonschema.ValidationError):
            check.validate({**line, "unheard_of": 1})
