"""F1, bytedance/deer-flow#3402 and #3429: the first injection fetches a tokenizer's file and the server stands still."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import socket, time

def refuse(*_, **__):
    raise SystemExit("the network was asked for")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = refuse
from everlong import open_memory, Scope

with open_memory("sqlite://", worker="none") as memory:
    ann = memory.at(Scope(user="ann", session="s1"))
    ann.add([("user", "I am allergic to peanuts. 我住在上海。"), ("assistant", "Noted. 记住了。")])
    memory.drain()
    began = time.perf_counter()
    block = ann.context("What may I eat? 我住在哪里？", budget=500)
    memory.status()
    assert "peanuts" in block.text and "上海" in block.text, block.text
    assert 0 < block.tokens <= 500
    assert time.perf_counter() - began < 2
print("done")
"""


def test_a_whole_turn_counts_tokens_without_network_or_cache(tmp_path) -> None:
    env = {"HOME": str(tmp_path), "PATH": "", "OPENBLAS_NUM_THREADS": "1", "https_proxy": "http://10.255.255.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=60, check=False
    )
    assert done.stdout.strip() == "done", done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is downloaded or cached"
