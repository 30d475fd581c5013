"""kill -9 at random moments: nothing that ``add`` acknowledged is missing, and no job's effect is doubled.

``EVERLONG_KILLS`` sets how many processes are killed (10 by default; 200 for the full proof).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from everlong import Scope, open_memory

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("EVERLONG_KILLS", "10"))
ANN = Scope(user="ann", session="s")

# Asking to remember makes extraction due at once, so that the worker thread is in the middle of it when we kill.
CHILD = """
import sys
from everlong import Scope, open_memory
memory = open_memory(sys.argv[1], embedder="none", lease_seconds=0.2)
ann = memory.at(Scope(user="ann", session="s"))
for number in range(int(sys.argv[2]), 1_000_000_000):
    added = ann.add([("user", f"Remember that box {number} holds item {number}.")])
    print(added.message_ids[0], flush=True)
"""


def test_no_acknowledged_turn_is_lost_and_no_effect_doubled(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with open_memory(url, embedder="none", worker="none"):
        pass
    dice = random.Random(20260101)
    acknowledged: list[str] = []
    for round_number in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, url, str(round_number * 1_000_000)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        acknowledged.append(child.stdout.readline().strip())
        time.sleep(dice.uniform(0, 0.15))
        child.kill()
        acknowledged += [line.strip() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        child.wait()
    assert all(acknowledged)
    time.sleep(0.3)  # the last killed worker's lease lapses
    with open_memory(url, embedder="none", worker="none", max_facts=500) as memory:
        memory.drain()
        ann = memory.at(ANN)
        stored = Counter(message.id for message in ann.messages(limit=1_000_000))
        assert not set(acknowledged) - set(stored)
        assert set(stored.values()) == {1}
        records, cursor = [], ""
        while True:
            page = ann.extractions(cursor=cursor, limit=1000)
            records += page.items
            cursor = page.next
            if not cursor:
                break
        assert not [record.error for record in records if record.error]
        extracted = Counter(message_id for record in records for message_id in record.messages)
        assert extracted == stored
        assert memory.status().waiting == memory.status().running == memory.status().parked == 0
    print(f"{KILLS} kills, {len(acknowledged)} acknowledged turns, {len(stored)} stored, none lost, none read twice")
