"""Memory files are searched by their text: in pieces, as they are now, with vectors when there is an embedder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everlong import Principal, Scope, open_memory
from everlong.config import Settings, build
from everlong.memory import Memory, ScopedMemory
from everlong.testing import TableEmbedder
from everlong.testing.samples import file

ANN, BOB = Scope(org="acme", user="ann", agent="coder"), Scope(org="acme", user="bob", agent="coder")
AXIS = [1.0] + [0.0] * 63
LONG = "\n\n".join(f"Section {number}: nothing of note was decided on day {number}." for number in range(60))


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    with open_memory(url, embedder="none", worker="none") as opened:
        yield opened
    if request.param == "postgres":
        request.getfixturevalue("postgres").release(url)


def found(scoped: ScopedMemory, question: str) -> list[tuple[str, str]]:
    hits = scoped.recall(question, kinds=["file"]).hits
    assert all(hit.kind == "file" and 0 <= hit.score <= 1 for hit in hits)
    return [(hit.record.path, hit.text) for hit in hits]


def test_a_piece_of_a_long_file_is_found_and_not_the_whole(memory: Memory) -> None:
    ann = memory.at(ANN)
    ann.files.write("/memories/log.md", f"{LONG}\n\nThe lighthouse keeper is called Ingrid.\n\n{LONG}")
    ann.files.write("/memories/笔记.md", f"{LONG}\n\n灯塔的看守人叫英格丽德。")
    (path, piece), *_ = found(ann, "Who is the lighthouse keeper?")
    assert path == "/memories/log.md" and "Ingrid" in piece and len(piece) <= 600
    (path, piece), *_ = found(ann, "灯塔的看守人是谁？")
    assert path == "/memories/笔记.md" and "英格丽德" in piece


def test_a_question_searches_files_only_when_it_names_them(memory: Memory) -> None:
    ann = memory.at(ANN)
    ann.files.write("/memories/a.md", "Ingrid keeps the lighthouse.")
    assert not ann.recall("Who keeps the lighthouse?").hits
    assert found(ann, "Who keeps the lighthouse?")


def test_nobody_else_finds_it(memory: Memory) -> None:
    memory.at(ANN).files.write("/memories/a.md", "Ingrid keeps the lighthouse.")
    assert not found(memory.at(BOB), "Ingrid lighthouse")


def test_a_change_is_seen_at_once_and_what_is_gone_is_not_found(memory: Memory) -> None:
    ann = memory.at(ANN)
    first = ann.files.write("/memories/a.md", f"{LONG}\n\nIngrid keeps the lighthouse.")
    assert found(ann, "Ingrid lighthouse")
    second = ann.files.edit("/memories/a.md", "Ingrid keeps the lighthouse.", "Olaf keeps the harbour.")
    assert not found(ann, "Ingrid lighthouse") and found(ann, "Olaf harbour")
    ann.files.write("/memories/a.md", "短。", expected=second.version)
    assert not found(ann, "Olaf harbour")
    ann.files.restore("/memories/a.md", first.version)
    assert found(ann, "Ingrid lighthouse")
    ann.files.delete("/memories/a.md")
    assert not found(ann, "Ingrid lighthouse")
    ann.files.write("/memories/b.md", "Ingrid keeps the lighthouse.")
    memory.at(Scope(org="acme", user="ann")).erase()
    assert not found(ann, "Ingrid lighthouse")


def test_a_narrower_file_hides_a_wider_one_even_when_it_is_no_text(memory: Memory) -> None:
    operator = memory.at(Scope(org="acme"), by=Principal(id="op", role="operator"))
    with memory.parts.store.write() as tx:
        tx.files.put(file("/shared/a.md", Scope(org="acme"), b"Ingrid keeps the lighthouse."), expected=0)
    assert found(operator, "Ingrid lighthouse") and found(memory.at(ANN), "Ingrid lighthouse")
    memory.at(ANN).files.write("/shared/a.md", b"\xff\xfe\x00\x81")
    assert not found(memory.at(ANN), "Ingrid lighthouse")
    assert found(memory.at(BOB), "Ingrid lighthouse")


def test_no_text_is_no_hit(memory: Memory) -> None:
    ann = memory.at(ANN)
    ann.files.write("/memories/empty.md", "")
    ann.files.write("/memories/picture.png", b"\x89PNG\xff\xfe")
    assert found(ann, "picture empty") == []


def test_text_no_database_can_keep_does_not_stop_the_file(memory: Memory) -> None:
    ann = memory.at(ANN)
    ann.files.write("/memories/nul.md", "Ingrid\x00 keeps the lighthouse.")
    assert found(ann, "lighthouse")
    assert ann.files.read("/memories/nul.md").content == b"Ingrid\x00 keeps the lighthouse."


def test_the_file_name_is_searched_too(memory: Memory) -> None:
    ann = memory.at(ANN)
    ann.files.write("/memories/lighthouse.md", "Ingrid since 1999.")
    assert found(ann, "lighthouse")


def test_passages_get_their_vectors_and_keep_them_while_they_read_the_same() -> None:
    embedder = TableEmbedder({"Who minds the beacon?": AXIS, "Ingrid keeps the lighthouse.": AXIS}, 64)
    with build(Settings(url="sqlite://", worker="none"), embedder=embedder) as memory:
        ann = memory.at(ANN)
        ann.files.write("/memories/a.md", "Ingrid keeps the lighthouse.")
        memory.drain()
        (hit,) = ann.recall("Who minds the beacon?", kinds=["file"]).hits
        assert hit.parts["cosine"] > 0.9
        del embedder.embedded[:]
        tail = "\n\n".join(["Olaf keeps the harbour." + " It is a long way there." * 30])
        first = ann.files.read("/memories/a.md")
        ann.files.write("/memories/a.md", f"Ingrid keeps the lighthouse.\n\n{tail}", expected=first.version)
        memory.drain()
        assert embedder.embedded and "Ingrid keeps the lighthouse." not in embedder.embedded
        (hit, *_) = ann.recall("Who minds the beacon?", kinds=["file"]).hits
        assert hit.parts["cosine"] > 0.9
        with memory.parts.store.read() as tx:
            assert not tx.passages.unembedded(Scope(org="acme", user="ann"), embedder.model, limit=1)


def test_reembedding_finds_passages_too() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        memory.at(ANN).files.write("/memories/a.md", "Ingrid keeps the lighthouse.")
        with memory.parts.store.read() as tx:
            assert tx.index.unembedded("table") == (Scope(org="acme", user="ann"),)
