"""N1: upload events in long-term memory: bytedance/deer-flow#4174 and its upload-filtering tests."""

import json

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel

PATH = "/mnt/user-data/uploads/t1/a.pdf"
DROPPED = [
    "User uploaded a file titled secret.txt",
    "用户上传了报告.pdf",
    f"The report is at {PATH}",
    f"报告在 {PATH} 里",
]
KEPT = [
    "User works with CSV files",
    "User prefers PDF export",
    "User maintains the upload service at work",
    "用户负责文件上传服务的开发",
    "User uploads nightly builds to S3 with rclone",
]


@pytest.mark.parametrize("block", ["uploaded_files", "current_uploads"])
@pytest.mark.parametrize("shape", ["text", "blocks"])
@pytest.mark.parametrize("asked", ["", "What does it say about tax?", "这份报告讲什么？"])
def test_the_notice_goes_and_the_question_beside_it_stays(block: str, shape: str, asked: str) -> None:
    notice = f"<{block}>\n- filename: a.pdf path: {PATH}\n</{block}>"
    content = f"{notice}\n{asked}" if shape == "text" else [{"type": "text", "text": part} for part in (notice, asked)]
    chosen = Settings(url="sqlite://", embedder="none", worker="none")
    with build(chosen, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        ann.add([{"role": "user", "content": content}, ("assistant", "It is about tax."), ("user", "I like tax law")])
        expected = [asked, "It is about tax."] if asked else []
        assert [m.content for m in ann.messages()] == [*expected, "I like tax law"]
        assert "uploads" not in repr(ann.messages())


def test_facts_about_uploads_are_refused_and_facts_about_uploading_are_not() -> None:
    facts = [
        {"content": c, "category": "context", "confidence": 0.95, "message": "m1", "quote": ""}
        for c in (*DROPPED, *KEPT)
    ]
    model = ScriptedChatModel(
        [json.dumps({"user": {}, "history": {}, "newFacts": facts, "factsToRemove": []}, ensure_ascii=False)]
    )
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        ann.add([("user", "。".join(KEPT))])
        memory.drain()
        assert {f.content for f in ann.facts(status=None).items} == set(KEPT)
