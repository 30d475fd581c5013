"""Takes secrets, and if wished personal data, out of what is about to be stored.

The rules are data (``redact.toml``). What they find becomes ``[redacted: kind]``; the rest of the text stays as it is.
:func:`redaction` is the skin of the onion that does so at every door through which text comes in.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from everlong.records import Added, Entry, Remembered
from everlong.write.capture import reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from everlong.protocols import Call, Clock, Middleware, NewId, Store

__all__ = ["MARK", "Level", "Redactor", "redaction"]

Level = Literal["secrets", "personal", "none"]

MARK: Final = "[redacted: "
"""How everything that stands for something taken out begins."""

_NAMES: Final = frozenset(
    {"path", "category", "cursor", "prefix", "target", "action", "job_id", "fact_id", "trace_id", "idempotency_key"}
    | {"topic", "refs"}
)
"""Arguments that name something and are never prose."""

_PLACEHOLDER: Final = re.compile(
    r"(?i)[*x.•_-]{2,}|[<{\[$%].*|your[ _-].*|.*[_-]here|(?:my[_-]?)?(?:password|passwd|pass|pwd|secret|token|key|apikey)|"
    r"(?:os|process|env|config|settings|self|secrets?)[.\[].*|changeme|example|placeholder|none|null|true|false|todo|tbd|n/?a|"
    r"(?:xxx+|abc|foo|bar|foobar|string|str|text)"
)
_DESCRIBED: Final = re.compile(
    r"(?i)[\w-]+(?:ed|ing|able|ible|ful|less|ive|ly|ent|ant|ous|itive)|"
    r"(?:an?|the|in|on|at|not|no|too|very|so|to|of|for|from|by|as|it|its|that|this|these|those|same|still|now|also|only|"
    r"always|never|just|here|there|what|wh(?:y|o|en|ere|ich)|how|my|your|our|his|her|their|one|something|anything|"
    r"wrong|right|ok|okay|fine|safe|secure|weak|strong|long|short|old|new|lost|bad|good|empty|blank|unknown|incorrect|"
    r"correct|invalid|valid|case|sha\d*|md5|bcrypt|argon2\w*|hash|plain|visible|public|private|default|optional|"
    r"int|integer|bool|boolean|bytes|varchar|char|secretstr|field|input|at least|min|max|less|more|up|set|sent|kept|due|"
    r"saved|stuck|both|all|any|field|type|a must|hidden|broken|simple|easy|hard|difficult|important|known|about)"
)
_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    kind: str
    level: Level
    near: tuple[str, ...]
    pattern: re.Pattern[str]
    checks: tuple[str, ...]


class Redactor:
    """Replaces secrets in text, and in all text inside a value. Safe for many threads.

    ``level`` is ``secrets`` (keys, tokens, passwords, private keys, cards, codes), ``personal`` (e-mail addresses, phone,
    ID and passport numbers and IBANs too) or ``none``. The same text always gives the same answer, and what was
    redacted once is not changed again.
    """

    def __init__(self, level: Level = "secrets") -> None:
        levels = {"none": (), "secrets": ("secrets",), "personal": ("secrets", "personal")}[level]
        self._rules = tuple(rule for rule in _load() if rule.level in levels)

    @property
    def idle(self) -> bool:
        """Whether nothing is ever redacted."""
        return not self._rules

    def text(self, said: str, found: Counter[str] | None = None) -> str:
        """``said`` without secrets; what was taken out is counted by kind in ``found``."""
        bare = _HIDDEN.sub("", said)
        # Characters that nobody sees would part a secret without changing what is copied out of it.
        return self._seen(bare if bare != said and self._seen(bare, None) != bare else said, found)

    def _seen(self, said: str, found: Counter[str] | None) -> str:
        lowered = said.lower()
        for rule in self._rules:
            if not rule.near or any(word in lowered for word in rule.near):
                said = rule.pattern.sub(partial(_replaced, rule=rule, found=found), said)
        return said

    def value(self, given: Any, found: Counter[str] | None = None) -> Any:
        """``given`` with the text inside its mappings, lists and UTF-8 bytes redacted; all else as it is."""
        match given:
            case str():
                return self.text(given, found)
            case bytes():
                return self._bytes(given, found)
            case Mapping():
                return {key: self._named(key, inner, found) for key, inner in given.items()}
            case list():
                return [self.value(inner, found) for inner in given]
            case tuple():
                return tuple(self.value(inner, found) for inner in given)
            case _:
                return given

    def _named(self, key: Any, given: Any, found: Counter[str] | None) -> Any:
        """A value under a key, which may be what tells that it is secret: ``{"password": …}``."""
        label = f"{key}: "
        if isinstance(key, str) and isinstance(given, str) and self.text(label) == label:
            return self.text(label + given, found)[len(label) :]
        return self.value(given, found)

    def _bytes(self, given: bytes, found: Counter[str] | None) -> bytes:
        try:
            return self.text(given.decode(), found).encode()
        except UnicodeDecodeError:
            return given


_HIDDEN: Final = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def _replaced(match: re.Match[str], rule: _Rule, found: Counter[str] | None) -> str:
    group = next((name for name in ("secret", "bare") if match.re.groupindex.get(name) and match[name]), 0)
    secret = match[group]
    if secret.startswith(MARK) or not all(_CHECKS[check](secret) for check in rule.checks):
        return match[0]
    if found is not None:
        found[rule.kind] += 1
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return f"{match[0][:start]}{MARK}{rule.kind}]{match[0][end:]}"


# ----------------------------------------------------------------------------------------------------- the skin


def redaction(redactor: Redactor, *, reads: Collection[str], store: Store, clock: Clock, new_id: NewId) -> Middleware:
    """A middleware that redacts every text argument of every call whose action is not one of ``reads``.

    So no door can forget it, not one that is added later either.

    Messages come in many shapes; :func:`everlong.write.capture.reshape` brings them into one. ``Added`` and ``Remembered``
    say what was redacted. Afterwards the journal gets an entry ``redacted`` with counts by kind, never what was found.
    """

    def skin(call: Call, handler: Callable[[Call], Any]) -> Any:
        if call.action in reads or redactor.idle:
            return handler(call)
        found: Counter[str] = Counter()
        arguments = {name: _argument(redactor, name, given, found) for name, given in call.arguments.items()}
        result = handler(replace(call, arguments=arguments))
        if not found:
            return result
        counts = dict(sorted(found.items()))
        with store.write() as tx:
            tx.journal.append(_entry(call, counts, clock, new_id))
        return replace(result, redacted=counts) if isinstance(result, (Added, Remembered)) else result

    return skin


def _argument(redactor: Redactor, name: str, given: Any, found: Counter[str]) -> Any:
    if name in _NAMES:
        return given
    if name == "messages" and not isinstance(given, (str, bytes)):
        return reshape(given, lambda part: redactor.value(part, found))
    return redactor.value(given, found)


def _entry(call: Call, counts: Mapping[str, int], clock: Clock, new_id: NewId) -> Entry:
    told = ", ".join(f"{number} × {kind}" for kind, number in counts.items())
    return Entry(
        id=new_id("log"),
        at=clock(),
        scope=call.scope,
        by=f"{call.by.role}:{call.by.id}",
        action="redacted",
        reason=f"taken out before it was stored: {told}",
        payload={"operation": call.action, "counts": dict(counts)},
    )


# ------------------------------------------------------------------------------------------------------- checks


def _luhn(secret: str) -> bool:
    """The check digit of cards (ISO/IEC 7812-1), which one random number in ten passes."""
    digits = [int(digit) for digit in secret if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _id_card(secret: str) -> bool:
    """The check character of Chinese resident identity cards (GB 11643, ISO 7064 MOD 11-2)."""
    total = sum(int(digit) * weight for digit, weight in zip(secret[:17], _WEIGHTS, strict=True))
    return "10X98765432"[total % 11] == secret[17].upper()


def _mod_97(secret: str) -> bool:
    """The check digits of bank accounts (ISO 13616, ISO 7064 MOD 97-10)."""
    bare = secret.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in bare[4:] + bare[:4])) % 97 == 1


def _mixed(secret: str) -> bool:
    """Letters and digits both: random text, not a name."""
    return any(c.isdigit() for c in secret) and any(c.isalpha() for c in secret)


def _password(secret: str) -> bool:
    """What could be a password, not a word that describes one ("my password is wrong")."""
    return not _DESCRIBED.fullmatch(secret) and "(" not in secret and not secret.startswith(("/", "http", "-"))


def _no_placeholder(secret: str) -> bool:
    return not _PLACEHOLDER.fullmatch(secret)


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "luhn": _luhn,
        "id card": _id_card,
        "mod 97": _mod_97,
        "mixed": _mixed,
        "password": _password,
        "no placeholder": _no_placeholder,
    }
)


@cache
def _load() -> tuple[_Rule, ...]:
    data = tomllib.loads(resources.files("everlong.write").joinpath("redact.toml").read_text("utf-8"))
    return tuple(
        _Rule(
            kind=entry["kind"],
            level=entry.get("level", "secrets"),
            near=tuple(entry.get("near", ())),
            pattern=re.compile(entry["pattern"], re.ASCII),
            checks=tuple(entry.get("check", "").split(", ")) if entry.get("check") else (),
        )
        for entry in data["rule"]
    )
