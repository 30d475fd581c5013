"""D1: words of unspaced scripts are not found: mnemosyne-oss/mnemosyne#168, openclaw/openclaw#20730, claude-mem#3801."""

from collections.abc import Iterator

import pytest

from everlong import Scope, open_memory
from everlong.memory import Memory

SAID = {
    "用户服务器部署在腾讯云国内节点": ["腾讯云", "服务器部署", "国内节点"],
    "今日は成語しりとりをした": ["しりとり", "成語"],
    "어제 끝말잇기를 했다": ["끝말잇기", "어제"],
    "我女儿在学大提琴": ["大提琴", "女儿"],
    "The deployment runs in Frankfurt": ["Frankfurt", "deployments"],
}


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_memory(url, embedder="none", worker="none") as opened:
        ann = opened.at(Scope(user="ann", session="t1"))
        ann.add([("user", said) for said in SAID])
        for said in SAID:
            ann.remember(said)
        yield opened


def test_each_word_finds_its_row_first(memory: Memory) -> None:
    ann = memory.at(Scope(user="ann", session="t2"))
    for said, words in SAID.items():
        for word in words:
            for kind in ("fact", "message"):
                hits = ann.recall(word, kinds=(kind,)).hits
                assert hits and hits[0].text == said, (word, kind)
