"""What a statement says, in parts that can be compared, and whether it is a statement at all."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everlong import text
from everlong.write.subject import NUMBER, one_of_several, qualifiers, said_beside, subject_of, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LONGEST", "UPLOAD", "Meaning", "junk", "meaning_of", "words_of"]

# ----------------------------------------------------------------------------------------------------------- junk

LONGEST: Final = 2_000
_JUNK: Final = re.compile(
    r"(?:none|n/?a|null|nil|nothing|undefined|string|unknown|empty|content|todo|无|没有|暂无|空)"
    r"|(?:there (?:are|is) )?no (?:new |relevant |additional )?(?:facts?|memor(?:y|ies)|information)\b.{0,40}"
    r"|(?:没有|无|未发现|暂无)(?:任何)?(?:新的?|相关的?)?(?:事实|记忆|信息|内容).{0,10}"
    r"|(?:i'?m |i am )?(?:sorry|afraid)\b.{0,20}\b(?:can(?:no|')t|unable|not able).*"
    r"|i (?:can(?:no|')t|am unable to|won't) (?:help|assist|comply|do that|provide|fulfil).*"
    r"|as an ai\b.*|(?:很抱歉|抱歉|对不起)[,，]?.{0,6}(?:无法|不能|没法).*|我(?:无法|不能)(?:协助|帮助|提供|回答).*"
    r"|</?[a-z_]+/?>|[\W_]*"
)
_JSON: Final = re.compile(r"\s*(?:```|[{\[]\s*(?:[\"'{\[]|[}\]]))", re.DOTALL)
_ECHO: Final = re.compile(
    r"\"?(?:newFacts|factsToRemove|shouldUpdate)\"?\s*:|a standalone sentence in the user's", re.IGNORECASE
)
UPLOAD: Final = re.compile(
    r"/mnt/user-data/uploads/|<uploaded_files>"
    r"|\b(?:user|they|he|she|i)\b (?:has |have |had |just |recently )*(?:uploaded|attached)\b"
    r"|\b(?:files?|documents?|images?) (?:was|were|has been|have been) (?:uploaded|attached)\b"
    r"|(?:用户|我|他|她)(?:刚刚?|已经?|又)?上传了|上传了.{0,12}(?:文件|图片|文档)",
    re.IGNORECASE,
)


def junk(content: str) -> str:
    """Why a text is no statement worth keeping; empty when it may be one."""
    plain = text.normal(content)
    if not plain or not content.strip():
        return "empty"
    if len(content) > LONGEST:
        return f"longer than {LONGEST} characters"
    if _JSON.match(content) or _ECHO.search(content):
        return "raw JSON or an echo of the prompt, not a statement"
    if plain.startswith("<think") or content.strip().lower().startswith("<think"):
        return "a model's thinking, not a statement"
    if _JUNK.fullmatch(plain.replace("’", "'")):
        return "a placeholder or refusal, not a statement"
    if UPLOAD.search(content):
        return "an upload is an event of one session, not a fact"
    return ""


# ---------------------------------------------------------------------------------------------------- comparison

_NEGATIONS: Final = re.compile(
    r"\b(?:no longer|not|no|never|cannot|without)\b|\b(?:do|does|did|is|are|was|were|ca|wo|would|could|should|has|have|had)n't\b"
    r"|不再|(?<!非)不(?![错同过仅但])|没有|没(?!关系)|(?<![特分区级性个类识告])别|无(?![线论])|未(?!来)"
)
_LIKES: Final = re.compile(r"\b(?:loves?|likes?|enjoys?|adores?)\b|喜欢|喜爱|热爱|爱(?![好人情])")
_DISLIKES: Final = re.compile(r"\b(?:hates?|dislikes?|detests?|loathes?)\b|讨厌|厌恶|憎恨|反感")
_ALLOWS: Final = re.compile(r"\b(?:allowed|permitted|enabled)\b|允许|启用")
_FORBIDS: Final = re.compile(r"\b(?:forbidden|prohibited|banned|disabled)\b|禁止|禁用")
_DATE: Final = re.compile(r"\d{4}-\d\d|\d+\s*[月日号点]|\d:\d\d|\d\s*[ap]m\b|周[一二三四五六日天]|星期")
_NAME: Final = re.compile(r"(?<![^\W_])[A-Z][\w+#.-]*")
_NO_NAMES: Final = frozenset("user user's the i he she they a an".split())
_SINGLE: Final = (
    re.compile(r"(.{1,40}?) (?:now |currently )?(lives?|is living|is based|resides?) in (.+)"),
    re.compile(r"(.{1,40}?) (?:now |currently )?(works?) (?:at|for) (.+)"),
    re.compile(r"(.{1,40}?)(?:'s)? (name is|is named|is called) (.+)"),
    re.compile(r"(用户|我|他|她)(?:现在|目前|已经)?(住在|居住在|搬到了?)(.+)"),
    re.compile(r"(用户|我|他|她)(?:现在|目前)?(就职于|任职于|的名字是|名叫|叫)(.+)"),
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A statement in parts that can be compared: its words without negation, and whether it affirms them."""

    plain: str
    words: Counter[str]
    affirms: bool
    numbers: frozenset[str]
    names: frozenset[str]
    slot: tuple[str, ...]

    def opposes(self, other: Meaning) -> bool:
        """Says the same of the same with the opposite verdict."""
        return bool(self.words) and self.words == other.words and self.affirms != other.affirms

    def changes_value(self, other: Meaning) -> bool:
        """Whether ``other``, said later, gives another value to what can have one at a time: a home, an employer, an
        amount. Of two things, or where that cannot be told, neither changes the other."""
        if said_beside(other.plain) or qualifiers(self.plain) != qualifiers(other.plain):
            return False
        if self.slot and other.slot and self.affirms == other.affirms:
            again = self.slot[:2] == other.slot[:2] and self.slot[2] != other.slot[2]
            return again and not one_of_several(self.slot[0], other.plain)
        if _DATE.search(self.plain) or _without_numbers(self.plain) != _without_numbers(other.plain):
            return False
        pairs = zip(NUMBER.finditer(self.plain), NUMBER.finditer(other.plain), strict=True)
        changed = [(number, later) for number, later in pairs if _bare(number) != _bare(later)]
        return bool(changed) and all(
            _same_unit(number, later) and value_at(self.plain, number, other.plain) for number, later in changed
        )

    def about_another(self, other: Meaning) -> bool:
        """Names another thing of the same kind before it says anything of it: box 5, box 8."""
        return subject_of(self.plain) != subject_of(other.plain)

    def differs(self, other: Meaning) -> bool:
        """A number, unit, name, negation or single word stands against another: never the same statement."""
        if self.affirms != other.affirms or self.numbers != other.numbers:
            return True
        if qualifiers(self.plain) != qualifiers(other.plain) or said_beside(self.plain) != said_beside(other.plain):
            return True
        mine, theirs = set(words_of(self.plain)), set(words_of(other.plain))
        if self.names - theirs or other.names - mine:
            return True
        return self._roles(other) != other._roles(self) or _swapped(self.plain, other.plain)

    def _roles(self, other: Meaning) -> list[str]:
        """The names that either statement knows as such, in order: Tom manages Ann, Ann manages Tom."""
        return [word for word in words_of(self.plain) if word in self.names | other.names]

    def overlap(self, other: Meaning) -> float:
        """Share of this statement's words, 0 to 1, that stand in the other."""
        words = set(self.words) - _SUBJECTS
        return len(words & set(other.words)) / len(words) if words else 0.0


_SUBJECTS: Final = frozenset({"user", "用户", "户", "用"})


def meaning_of(content: str) -> Meaning:
    plain = text.normal(content).replace("’", "'")
    verdict = _FORBIDS.sub(" allowed ", _DISLIKES.sub(" not like ", plain))
    negations = len(_NEGATIONS.findall(verdict)) + len(_FORBIDS.findall(plain))
    bare = _ALLOWS.sub(
        "allowed", _LIKES.sub(" like ", _NEGATIONS.sub(lambda match: " " if match[0].isascii() else "", verdict))
    )
    names = frozenset(m[0].rstrip(".-").casefold() for m in _NAME.finditer(content) if m.start()) - _NO_NAMES
    return Meaning(
        plain, Counter(text.terms(bare)), negations % 2 == 0, frozenset(_numbers(plain)), names, _slot(plain)
    )


def _numbers(plain: str) -> Iterable[str]:
    return map(_bare, NUMBER.finditer(plain))


def _bare(number: re.Match[str]) -> str:
    return "".join(number[0].split())


def _same_unit(number: re.Match[str], later: re.Match[str]) -> bool:
    """Whether both count the same: 1 child, 2 children; not 2 cats, 3 dogs."""
    one, other = (number[0].lstrip("0123456789.,:/- 一二两三四五六七八九十百千万") for number in (number, later))
    return one.startswith(other) or other.startswith(one)


def _without_numbers(plain: str) -> str:
    return NUMBER.sub("#", plain)


def words_of(plain: str) -> list[str]:
    return re.findall(r"[^\W_][\w+#.-]*[\w+#]|[^\W_]", plain)


def _slot(plain: str) -> tuple[str, ...]:
    for number, pattern in enumerate(_SINGLE):
        match = pattern.fullmatch(plain)
        if match:
            return (match[1], str(number), match[3].strip())
    return ()


def _swapped(one: str, other: str) -> bool:
    """Whether one word of one text stands where another word stands in the other: tea and coffee, 北京 and 上海."""
    a, b = (list(t) if not t.isascii() else t.split() for t in (one, other))
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest = list(zip(reversed(a[head:]), reversed(b[head:]), strict=False))
    tail = next((i for i, (x, y) in enumerate(rest) if x != y), len(rest))
    most = 1 if one.isascii() and other.isascii() else 4
    return all(0 < len(t) - head - tail <= most for t in (a, b))
