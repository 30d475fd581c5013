"""Which rows hold a term, over buckets and changes."""

from __future__ import annotations

from everlong.records import Scope
from everlong.text import terms
from tests.unit.read.desk import Desk


def test_rows_of_terms_are_those_that_score() -> None:
    desk = Desk()
    desk.know("a cello and a viola", scope=Scope(user="ann"))
    for content in ("我有大提琴", "a cello", "nothing"):
        desk.know(content, scope=Scope(user="ann", agent="bot"))
    with desk.store.read() as tx:
        corpus = desk.reader._index.corpus(tx, Scope(user="ann", agent="bot"), "fact")
        for word in ("cello", "琴", "viola"):
            assert [rows.tolist() for rows in corpus.rows(terms(word))] == [corpus.bm25([word]).nonzero()[0].tolist()]
        assert len(corpus.rows(terms("cello cello"))) == 1
        assert corpus.rows(terms("harp")) == corpus.rows([]) == []
