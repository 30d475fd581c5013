"""What can be said of a text without a model: terms for search, tokens, sentences, normal forms, safe names.

Pure functions of their arguments; nothing is read from disk or network. English and Chinese are equal citizens.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import import_module
from itertools import pairwise
from math import ceil
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

_HAN: Final = "\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA: Final = "\u3040-\u30ff\u31f0-\u31ff"
_HANGUL: Final = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED: Final = f"{_HAN}{_KANA}{_HANGUL}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Scripts written without spaces (Thai, Lao, Burmese and Khmer too), and Hangul, whose particles stick to words."""

# --------------------------------------------------------------------------------------------------- cleaning

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_INVISIBLE: Final = re.compile("[\u00ad\u200b\u2060\ufeff]")
_EDGES: Final = " .,;:!?'\"`()[]{}<>…。、，；：！？·“”‘’「」『』（）【】《》〈〉"


def clean(text: str) -> str:
    """The text as any store and any encoder can keep it; never raises.

    Control characters other than newline, tab and carriage return are removed. Surrogate pairs are joined, lone
    surrogates become U+FFFD.
    """
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROLS.sub("", text)


def normal(text: str) -> str:
    """The form in which duplicates are equal: width, case, spacing, accents' encoding and outer punctuation are
    levelled; words, order, numbers, ``C++`` and ``C#`` are not."""
    folded = _INVISIBLE.sub("", _fold(clean(text)))
    collapsed = " ".join(folded.split())
    return collapsed.strip(_EDGES) or collapsed


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


# ------------------------------------------------------------------------------------------------------ terms

TERMS_VERSION: Final = 1
"""Grows when :func:`terms` answers differently for some text, so that stored terms can be made anew."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOPWORDS: Final = _words(
    """a about am an and any are as at be because been being but by can could did do does doing for from had has
    have having he her hers him his how i if in into is it its just me my of on or our ours shall she should so some
    such than that the their theirs them then there these they this those to too us very was we were what when where
    which while who whom whose why will with would you your yours"""
)
"""Pronouns, articles, auxiliaries, prepositions and question words. Negations and numbers stay: they are content."""

_STOP_CHARACTERS: Final = frozenset(
    "的了吗嗎呢啊吧呀哦地得着著过過是在和与與也都就还還我你您他她它们們这這那哪谁誰么麼个個被把"
)
"""Particles, pronouns and copulas: they stand in nearly every sentence, so alone they tell no text from another.
Their bigrams with content characters stay (目的, 了解, 在线). 不, 没 and 有 are content."""

_QUESTION_WORDS: Final = re.compile(
    "为什么|為什麼|什么|什麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣"
    "|哪里|哪裡|哪儿|哪兒|哪个|哪個|哪些|多少|是不是|有没有|有沒有|请问|請問"
)
"""They mark a question but never stand in its answer, so they would only reward other questions."""

_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MARKS: Final = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_LETTER: Final = rf"[^\W_{_UNSPACED}]"
_VOWEL_SIGNS: Final = "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Marks of Hebrew, Arabic and the scripts of India, which stand inside words but count as no letters."""
_WORD: Final = rf"{_LETTER}+(?:[{_VOWEL_SIGNS}]+{_LETTER}*)*"
_TOKEN: Final = re.compile(rf"([{_UNSPACED}]+)|{_WORD}(?:[-._/'’@&:]{{1,2}}{_WORD})*(?:\+\+|#)?")
_JOINTS: Final = re.compile(r"[-._/'@&:]+")
_CLITICS: Final = re.compile(r"'(?:s|m|ve|re|ll|d)$")
_LONGEST_STEMMED: Final = 40
_KANA_LETTER: Final = re.compile(f"[{_KANA}]")


def terms(text: str) -> list[str]:
    """What a text is found by, one entry an occurrence; the same function serves texts and questions.

    English words become Porter stems without stopwords; other spaced scripts keep whole words; accents are
    dropped on Latin letters only. Identifiers (``E-4021``, ``CLAUDE.md``, ``snake_case``, ``C++``) count whole and
    by their parts. Runs of Chinese, Japanese, Korean and Thai give character bigrams, and single characters as
    well so that a one-character word is found inside a run; kana and Thai only when they stand alone.
    """
    found: list[str] = []
    folded = _THOUSANDS.sub("", _unaccented(_fold(text)))
    for match in _TOKEN.finditer(folded):
        if match[1]:
            for run in _QUESTION_WORDS.split(match[1]):
                found.extend(_grams(run))
        else:
            found.extend(_word(match[0]))
    return found


def _grams(run: str) -> Iterator[str]:
    if len(run) == 1 and run not in _STOP_CHARACTERS:
        yield run
        return
    for left, right in pairwise(run):
        if left not in _STOP_CHARACTERS or right not in _STOP_CHARACTERS:
            yield left + right
    for character in run if len(run) > 1 else "":
        if character not in _STOP_CHARACTERS and character > "\u2fff" and not _KANA_LETTER.match(character):
            yield character


@lru_cache(maxsize=65_536)
def _word(word: str) -> tuple[str, ...]:
    """Terms of one spaced word: the stem, or an identifier with the stems of its parts."""
    word = _CLITICS.sub("", word.replace("’", "'"))
    parts = _JOINTS.split(word.replace("'", ""))
    if len(parts) == 1:
        return () if parts[0] in _STOPWORDS else (_stem(parts[0]),)
    whole = word.replace("'", "")
    return (whole, *(_stem(part) for part in parts if len(part) > 1 and part not in _STOPWORDS))


_stemming: Final = Lock()


def _stem(word: str) -> str:
    if len(word) > _LONGEST_STEMMED or not (word.isascii() and word.isalpha()):
        return word
    with _stemming:  # a stemmer keeps the word it works on in itself
        return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    return import_module("snowballstemmer").stemmer("porter")


def _unaccented(text: str) -> str:
    return text if text.isascii() else _MARKS.sub("", text.translate(_accents()))


@cache
def _accents() -> dict[int, str]:
    """Latin letters with marks, each with its base letter; other scripts keep theirs (й is not и)."""
    table = {ord("ø"): "o", ord("ł"): "l", ord("đ"): "d", ord("æ"): "ae", ord("œ"): "oe", ord("ı"): "i", ord("ħ"): "h"}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        base = unicodedata.normalize("NFD", chr(code))
        if len(base) > 1 and base[0].isascii():
            table[code] = base[0]
    return table


def pack_terms(terms: Sequence[str]) -> bytes:
    """Terms as the index keeps them: eight bytes (little-endian BLAKE2b-64) an occurrence."""
    return b"".join(map(_digest, terms))


def unpack_terms(data: bytes) -> NDArray[np.uint64]:
    """The hashes in packed terms, one an occurrence; a view, not a copy."""
    import numpy as np

    return np.frombuffer(data, dtype="<u8")


def hash_term(term: str) -> int:
    """The hash by which the index knows a term, 0 to 2**64 - 1, equal on every machine."""
    return int.from_bytes(_digest(term), "little")


@lru_cache(maxsize=131_072)
def _digest(term: str) -> bytes:
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()


# ----------------------------------------------------------------------------------------------------- tokens

_COUNTED: Final = re.compile(
    rf"(?P<ending>['’](?:[sdmt]|ll|ve|re)\b)|(?P<word>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<blank>\s+)"
    rf"|(?P<mark>[!-/:-@\[-`{{-~]+)|(?P<han>[\u3400-\u9fff]+)|(?P<hangul>[{_HANGUL}]+)|(?P<wide>[{_UNSPACED}\u3000-\u303f\uff00-\uffef])"
    rf"|(?P<letters>[^\W\d_]+)|(?P<other>.)",
    re.DOTALL,
)
_ONE_TOKEN_WORD: Final = 11


def estimate_tokens(text: str) -> int:
    """About how many tokens a model sees in a text, rather too many than too few; offline.

    Set by what the ``cl100k_base`` vocabulary spends, counted over the English and Chinese texts of LoCoMo,
    MemoryBank and MADial-Bench: words of up to eleven letters one token with the space before them, Chinese 1.27 a
    character and one a mark, digits by threes; on running text within 5 %. Code, tables and other scripts are rather
    overestimated: an emoji three, Hangul 1.3, other alphabets one in two letters. Newer vocabularies spend less on
    Chinese (0.6 to 0.8 a character), so a block never passes its budget there.
    """
    return ceil(sum(_cost(match.lastgroup or "", match[0]) for match in _COUNTED.finditer(text)))


def _cost(kind: str, run: str) -> float:
    size = len(run)
    match kind:
        case "word" | "ending":
            return 1 if size <= _ONE_TOKEN_WORD else size / 4
        case "han":
            return 1.27 * size
        case "digits":
            return ceil(size / 3)
        case "blank":
            return 0 if run == " " else 1 + size // 16
        case "mark" | "letters":
            return ceil(size / 2)
        case "hangul":
            return 1.3 * size
        case "wide":
            return size
        case _:
            return 3 if run > "\u2fff" else 1


# -------------------------------------------------------------------------------------------------- sentences

_ENDS: Final = re.compile("\n+|[.!?。！？｡…]+[\"'”’」』）)\\]]*")
_FULL_STOPS: Final = frozenset("。！？｡")
_ABBREVIATIONS: Final = _words("mr mrs ms dr prof sr st vs e.g i.e eg ie cf approx dept est")
_BEFORE_NUMBERS: Final = _words("no nos fig vol pp sec ch")
_MAYBE_LAST: Final = _words("etc inc ltd co corp al jr")
_DOTTED: Final = re.compile(r"(?!e\.g|i\.e)[A-Za-z](?:\.[A-Za-z])+")
_LAST_WORD: Final = re.compile(r"[^\s(\"'“]*$")
_WIDE: Final = re.compile(f"[{_UNSPACED}]")
_COMMAS: Final = re.compile(r"[，；;]|,(?=\s)")


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a text, trimmed, blank ones left out; a line break always ends one.

    Points in numbers, abbreviations, initials, list numbers and addresses end nothing.
    """
    spans = []
    start = 0
    for match in _ENDS.finditer(text):
        if _ends_sentence(text, match):
            spans.append((start, match.end()))
            start = match.end()
    spans.append((start, len(text)))
    return [span for span in (_trimmed(text, *span) for span in spans) if span[0] < span[1]]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    mark = match[0]
    if mark[0] == "\n" or not _FULL_STOPS.isdisjoint(mark):
        return True
    following = text[match.end() : match.end() + 1]
    if following and not following.isspace() and (mark[0] == "…" or not _WIDE.match(following)):
        return False
    return mark[0] != "." or not _is_abbreviated(text, match)


def _is_abbreviated(text: str, match: re.Match[str]) -> bool:
    before = _LAST_WORD.search(text, max(0, match.start() - 20), match.start())
    word = before[0] if before else ""
    rest = text[match.end() : match.end() + 2].lstrip()
    if word.isdigit():  # "1. first item"
        return text[: match.start() - len(word)].rstrip(" ")[-1:] in {"", "\n"} and bool(rest)
    if word.lower() in _BEFORE_NUMBERS:
        return rest[:1].isdigit()
    if word.lower() in _MAYBE_LAST or _DOTTED.fullmatch(word):
        return bool(rest) and not rest[:1].isupper()
    return bool(rest) and (word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I"))


def clauses(text: str) -> list[tuple[int, int]]:
    """Spans of the clauses of a text: its sentences cut at commas and semicolons, which are left out. A comma
    between digits and the list comma ``、`` cut nothing."""
    spans = []
    for first, last in sentences(text):
        start = first
        for match in _COMMAS.finditer(text, first, last):
            spans.append((start, match.start()))
            start = match.end()
        spans.append((start, last))
    return [span for span in (_trimmed(text, *span) for span in spans) if span[0] < span[1]]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    body = text[start:end]
    return start + len(body) - len(body.lstrip()), end - len(body) + len(body.rstrip())


def pieces(text: str, *, limit: int = 600, size: int = 400) -> list[str]:
    """A text in parts that an embedder can take: whole up to ``limit`` characters, else cut near ``size`` at the
    ends of sentences, or of words when a sentence is longer. A blank text has none."""
    ends = [end for _, end in sentences(text)] if len(text) > limit else []
    cuts = [0]
    while len(text) - cuts[-1] > limit:
        cuts.append(_cut(text, cuts[-1], cuts[-1] + size, ends))
    cuts.append(len(text))
    parts = (text[start:end].strip() for start, end in pairwise(cuts))
    return [part for part in parts if part]


def _cut(text: str, start: int, most: int, ends: list[int]) -> int:
    within = [end for end in ends if start < end <= most]
    if within:
        return within[-1]
    blank = max(text.rfind(" ", start + 1, most), text.rfind("\n", start + 1, most))
    return blank if blank > (start + most) // 2 else most


# ------------------------------------------------------------------------------------------------------ names

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)")
_LONGEST_NAME: Final = 255
_HASHED: Final = "%-"
_BROKEN_ESCAPE: Final = re.compile("%.?$")
_ESCAPES: Final = re.compile(r"%([0-9a-f]{2})")


def safe_name(identifier: str) -> str:
    """A file name for any id, valid and distinct on every file system, also where case does not count.

    Plain lower-case letters, digits, ``-``, ``_`` and inner dots stay; every other byte of its UTF-8 becomes
    ``%xx``. What would pass 255 bytes becomes a prefix and a hash, which cannot be read back.
    """
    data = identifier.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in data) or "%"
    if name[0] in ".-" or _RESERVED.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if name[-1] == ".":
        name = f"{name[:-1]}%2e"
    if len(name) <= _LONGEST_NAME:
        return name
    return _BROKEN_ESCAPE.sub("", name[:180]) + _HASHED + blake2b(data, digest_size=20).hexdigest()


def from_safe_name(name: str) -> str:
    """The id that :func:`safe_name` made ``name`` of.

    Raises:
        InvalidInput: ``name`` is no such name, or one that was shortened.
    """
    plain = "" if name == "%" else _ESCAPES.sub(lambda match: chr(int(match[1], 16)), name)
    try:
        identifier = plain.encode("latin-1").decode("utf-8", "surrogatepass")
    except UnicodeError:
        identifier = ""
    if safe_name(identifier) != name or _HASHED in name:
        msg = f"{name!r} is not the safe name of any id"
        raise InvalidInput(msg)
    return identifier
