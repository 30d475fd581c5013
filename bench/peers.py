"""Vector search beside libraries that an agent might use instead, over the same vectors, in one process, one after another.

    python bench/peers.py [--sizes 1000 10000] [--dimensions 256] [--json] [--only everlong chroma]

Each is used as its documentation shows for local use, with its own defaults, its telemetry off; one that is not
installed is left out and named. All get the same vectors, texts and questions, made beforehand. ``ms`` is the ten
nearest rows with their texts; ``found`` is the share of the exact ten among them. Questions carry their vectors, so no
model takes part, and nothing here asks the network. For everlong there are two lines: the ten nearest with their
rows, and the whole public ``recall``, which also ranks by words, neighbours, speakers and days and explains itself.
"""

from __future__ import annotations

import os

os.environ |= {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "OPENAI_API_KEY": "none",
}

import argparse
import json
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import synthetic
from latency import HOME, opened
from synthetic import TOP, best, matrix, portions, questions, shares, undisturbed

from everlong.records import Query

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray
    from synthetic import Asked

    Search = Callable[[Asked], list[int]]
    """The rows that it finds for a question, best first."""

QUESTIONS = 100
BATCH = 1000


class Data:
    """What everyone gets."""

    def __init__(self, size: int, dimensions: int) -> None:
        self.size, self.dimensions = size, dimensions
        self.vectors: NDArray[np.float32] = matrix(size, dimensions)
        self.texts = [text for part in portions(size, dimensions) for text in part.texts]
        self.asked = questions(size, dimensions, QUESTIONS)
        self.known = {one.text: one.vector.tolist() for one in self.asked}
        self.known |= {text: vector.tolist() for text, vector in zip(self.texts, self.vectors, strict=True)}

    def batches(self) -> list[range]:
        """The rows in portions."""
        return [range(start, min(start + BATCH, self.size)) for start in range(0, self.size, BATCH)]

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Looks vectors up; some give the whole record as JSON."""
        bare = (json.loads(text)["text"] if text.startswith("{") else text for text in texts)
        return [self.known[text] for text in bare]


def numpy_floor(data: Data, folder: str) -> Search:
    """One plain pass, without rows: the floor."""
    del folder
    return lambda one: best(data.vectors @ one.vector).tolist()


def everlong(data: Data, folder: str) -> Search:
    """The ten nearest, with their rows."""
    memory = opened(f"sqlite:///{folder}/memory.db", data.asked, data.dimensions)
    synthetic.fill(memory.parts.store, portions(data.size, data.dimensions), lambda _: HOME)
    store, index = memory.parts.store, memory.parts.index

    def search(one: Asked) -> list[int]:
        with store.read() as tx:
            seen = index.corpus(tx, HOME, "message")
            names = [seen.ids[row] for row in best(seen.cosine(one.vector)).tolist()]
            rows = tx.messages.many(HOME, names)
        return [int(rows[name].id[4:]) for name in names]

    return search


def everlong_recall(data: Data, folder: str) -> Search:
    """The public call, which ranks by more than vectors: how many of the exact ten it finds is not its aim."""
    memory = opened(f"sqlite:///{folder}/memory.db", data.asked, data.dimensions)
    synthetic.fill(memory.parts.store, portions(data.size, data.dimensions), lambda _: HOME)
    here = memory.at(HOME)
    return lambda one: [int(hit.id[4:]) for hit in here.recall(Query(text=one.text, limit=TOP, min_score=0.0)).hits]


def langgraph_sqlite(data: Data, folder: str) -> Search:
    """``SqliteStore`` with sqlite-vec."""
    from langgraph.store.sqlite import SqliteStore
    from pysqlite3 import dbapi2  # Python's own may be built without extensions, which sqlite-vec is

    connection = dbapi2.connect(f"{folder}/store.db", check_same_thread=False, isolation_level=None)
    return _langgraph(
        data, SqliteStore(connection, index={"dims": data.dimensions, "embed": data.embed, "fields": ["text"]})
    )


def langgraph_memory(data: Data, folder: str) -> Search:
    """``InMemoryStore``."""
    del folder
    from langgraph.store.memory import InMemoryStore

    return _langgraph(data, InMemoryStore(index={"dims": data.dimensions, "embed": data.embed, "fields": ["text"]}))


def _langgraph(data: Data, store: Any) -> Search:
    from langgraph.store.base import PutOp

    if hasattr(store, "setup"):
        store.setup()
    for rows in data.batches():
        store.batch([PutOp(("ann",), str(row), {"text": data.texts[row]}) for row in rows])
    return lambda one: [int(item.key) for item in store.search(("ann",), query=one.text, limit=TOP)]


def qdrant_local(data: Data, folder: str) -> Search:
    """``QdrantClient(path=…)``."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=f"{folder}/qdrant")
    client.create_collection(
        "turns", vectors_config=models.VectorParams(size=data.dimensions, distance=models.Distance.COSINE)
    )
    for rows in data.batches():
        points = [
            models.PointStruct(id=row, vector=data.vectors[row].tolist(), payload={"text": data.texts[row]})
            for row in rows
        ]
        client.upsert("turns", points)

    def search(one: Asked) -> list[int]:
        found = client.query_points("turns", query=one.vector.tolist(), limit=TOP, with_payload=True)
        return [point.id for point in found.points]

    return search


def qdrant_edge(data: Data, folder: str) -> Search:
    """A shard of Qdrant Edge, the engine in this process."""
    import qdrant_edge as edge

    (Path(folder) / "edge").mkdir()
    vectors = edge.EdgeVectorParams(data.dimensions, edge.Distance.Cosine)
    shard = edge.EdgeShard.create(f"{folder}/edge", edge.EdgeConfig(vectors))
    for rows in data.batches():
        points = [edge.Point(row, data.vectors[row].tolist(), {"text": data.texts[row]}) for row in rows]
        shard.update(edge.UpdateOperation.upsert_points(points))
    while shard.optimize():
        pass

    def search(one: Asked) -> list[int]:
        nearest = edge.Query.Nearest(one.vector.tolist())
        return [point.id for point in shard.query(edge.QueryRequest(TOP, query=nearest, with_payload=True))]

    return search


def chroma(data: Data, folder: str) -> Search:
    """``PersistentClient``, cosine."""
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    collection = chromadb.PersistentClient(f"{folder}/chroma", settings=settings).create_collection(
        "turns", embedding_function=None, metadata={"hnsw:space": "cosine"}
    )
    for rows in data.batches():
        names = [str(row) for row in rows]
        texts = [data.texts[row] for row in rows]
        collection.add(ids=names, embeddings=data.vectors[rows.start : rows.stop], documents=texts)

    def search(one: Asked) -> list[int]:
        found = collection.query(query_embeddings=[one.vector.tolist()], n_results=TOP, include=["documents"])
        return [int(name) for name in found["ids"][0]]

    return search


def zvec_flat(data: Data, folder: str) -> Search:
    """zvec, exact (flat) index."""
    import zvec

    return _zvec(data, folder, zvec.FlatIndexParam(metric_type=zvec.MetricType.IP))


def zvec_hnsw(data: Data, folder: str) -> Search:
    """zvec, HNSW."""
    import zvec

    return _zvec(data, folder, zvec.HnswIndexParam(metric_type=zvec.MetricType.IP))


def _zvec(data: Data, folder: str, parameters: Any) -> Search:
    import zvec

    schema = zvec.CollectionSchema(
        name="turns",
        fields=zvec.FieldSchema("text", zvec.DataType.STRING),
        vectors=zvec.VectorSchema("vector", zvec.DataType.VECTOR_FP32, data.dimensions, index_param=parameters),
    )
    collection = zvec.create_and_open(f"{folder}/zvec", schema)
    for rows in data.batches():
        made = [
            zvec.Doc(id=str(row), vectors={"vector": data.vectors[row].tolist()}, fields={"text": data.texts[row]})
            for row in rows
        ]
        collection.insert(made)
    collection.optimize()

    def search(one: Asked) -> list[int]:
        found = collection.query(zvec.Query("vector", vector=one.vector.tolist()), topk=TOP, output_fields=["text"])
        return [int(doc.id) for doc in found]

    return search


def mem0(data: Data, folder: str) -> Search:
    """``Memory.search`` over its default local store; the rows go in as its ``add`` without inference puts them."""
    from langchain_core.embeddings import Embeddings
    from mem0 import Memory

    class Known(Embeddings):
        """Looks vectors up."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return data.embed(texts)

        def embed_query(self, text: str) -> list[float]:
            return data.known[text]

    store = {"path": f"{folder}/mem0", "on_disk": True, "embedding_model_dims": data.dimensions}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "langchain", "config": {"model": Known()}},
            "history_db_path": f"{folder}/history.db",
        }
    )
    names = [str(uuid.UUID(int=row)) for row in range(data.size)]
    for rows in data.batches():
        payloads = [
            {"data": data.texts[row], "user_id": "ann", "hash": str(row), "created_at": "2025-01-01T00:00:00+00:00"}
            for row in rows
        ]
        memory.vector_store.insert(
            data.vectors[rows.start : rows.stop].tolist(), payloads=payloads, ids=names[rows.start : rows.stop]
        )

    def search(one: Asked) -> list[int]:
        found = memory.search(one.text, top_k=TOP, filters={"user_id": "ann"}, threshold=0.0)
        return [uuid.UUID(hit["id"]).int for hit in found["results"]]

    return search


PEERS = {
    "numpy, one pass, no rows (floor)": numpy_floor,
    "everlong, ten nearest with rows": everlong,
    "everlong, whole recall": everlong_recall,
    "langgraph SqliteStore": langgraph_sqlite,
    "langgraph InMemoryStore": langgraph_memory,
    "qdrant-client, local": qdrant_local,
    "qdrant-edge-py, shard": qdrant_edge,
    "chroma, persistent": chroma,
    "zvec, flat": zvec_flat,
    "zvec, hnsw": zvec_hnsw,
    "mem0, default store": mem0,
}


def measure(name: str, data: Data) -> dict[str, Any]:
    """One peer: seconds to put all in, milliseconds of a question, share of the exact ten found."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        started = time.perf_counter()
        try:
            search = PEERS[name](data, folder)
        except ImportError as missing:
            return {"left out": f"{missing.name or missing} is not installed"}
        filled = time.perf_counter() - started
        first, *rest = data.asked
        search(first)
        taken, found = [], 0
        with undisturbed():
            for one in rest:
                started = time.perf_counter()
                rows = search(one)
                taken.append(1000 * (time.perf_counter() - started))
                found += len(set(rows) & set(best(data.vectors @ one.vector).tolist()))
    return {"ms": shares(taken), "found": round(found / TOP / len(rest), 3), "put in, s": round(filled, 1)}


def main() -> None:
    """Prints a table for each size, or JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    options.add_argument("--dimensions", type=int, default=256)
    options.add_argument("--only", nargs="*", default=[], help="peers whose names begin so")
    options.add_argument("--json", action="store_true", help="print JSON")
    given = options.parse_args()
    chosen = [name for name in PEERS if not given.only or name.startswith(tuple(given.only))]
    answers: dict[int, dict[str, dict[str, Any]]] = {}
    for size in given.sizes:
        data = Data(size, given.dimensions)
        answers[size] = {}
        if not given.json:
            print(f"{f'{size:,} rows':36}{'ms p50':>10}{'p95':>10}{'found':>8}{'put in, s':>12}", flush=True)
        for name in chosen:
            row = answers[size][name] = measure(name, data)
            if not given.json:
                cells = f"{row['ms']['p50']:>10}{row['ms']['p95']:>10}{row['found']:>8}{row['put in, s']:>12}" if "ms" in row else f"   {row['left out']}"  # fmt: skip
                print(f"{name:36}{cells}", flush=True)
    if given.json:
        print(json.dumps({"dimensions": given.dimensions, "unit": "ms", "sizes": answers}, indent=1))


if __name__ == "__main__":
    main()
