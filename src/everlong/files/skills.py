"""Skills: procedures in the Agent Skills format, one folder each with a ``SKILL.md`` that says what it is for."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import regex
import yaml

from everlong.errors import InvalidInput, NotFound
from everlong.files.paths import check_path
from everlong.records import BrokenSkill, Skill, Skills
from everlong.text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.files.keeper import Keeper
    from everlong.records import FileInfo, MemoryFile, Scope

__all__ = ["SKILL_FOLDERS", "Librarian", "parse", "render", "skill_path", "write_skill"]

SKILL_FOLDERS: Final = ("/policies/skills/", "/agent/skills/", "/memories/skills/", "/skills/")
"""Where skills are looked for; of equal names the later folder's counts, but one kept by operators always does."""

_FILE: Final = "SKILL.md"
_MAX_HEADER: Final = 65_536
_LIMITS: Final = {"name": 64, "description": 1024, "compatibility": 500}
"""Characters; the limits of the Agent Skills format, as Deep Agents keeps them."""
_NAME: Final = regex.compile(r"[\p{L}\p{N}]+(?:-[\p{L}\p{M}\p{N}]+)*")
_HEADER: Final = regex.compile(r"\s*---[ \t]*\r?\n(.*?)(?<=\n)---(?!-)[ \t]*(?:\r?\n)?(.*)", regex.DOTALL)
_PLAIN: Final = regex.compile(r"(?P<key>[\w-]+):[ \t]+(?P<value>\S.*)")


class Librarian:
    """The skills that are visible from a scope."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def list(self, scope: Scope) -> Skills:
        """Every skill by name, and every one that is broken with its reason; a broken one never hides others."""
        found: dict[str, Skill] = {}
        broken: list[BrokenSkill] = []
        for info in self._listed(scope):
            try:
                skill = parse(self._keeper.read(info.scope, path=info.path))
            except NotFound:  # deleted since it was listed
                continue
            except InvalidInput as error:
                broken.append(BrokenSkill(name=_folder(info.path), path=info.path, reason=str(error)))
                continue
            older = found.get(skill.name, skill)
            kept, hidden = (older, skill) if skill.learned and not older.learned else (skill, older)
            found[skill.name] = replace(kept, body="")
            if hidden.learned and not kept.learned:
                reason = f"operators keep a skill of this name at {kept.path}"
                broken.append(BrokenSkill(name=hidden.name, path=hidden.path, reason=reason))
        return Skills(skills=tuple(found[name] for name in sorted(found)), broken=tuple(broken))

    def load(self, scope: Scope, *, name: str) -> Skill:
        """One skill in full, with the names of the files beside it.

        Raises:
            NotFound: there is none of that name.
            InvalidInput: it is broken; the message says how.
        """
        listed = self.list(scope)
        for known in listed.skills:
            if known.name == name:
                folder = known.path.removesuffix(_FILE)
                beside = self._keeper.list(scope, prefix=folder)
                files = tuple(i.path.removeprefix(folder) for i in beside if i.scope == known.scope)
                full = parse(self._keeper.read(known.scope, path=known.path))
                return replace(full, files=tuple(each for each in files if each != _FILE))
        for bad in listed.broken:
            if bad.name == name:
                raise InvalidInput(f"skill {name} is broken: {bad.reason}")
        raise NotFound(f"no skill {name!r} is visible from {scope}")

    def _listed(self, scope: Scope) -> Iterator[FileInfo]:
        for folder in SKILL_FOLDERS:
            for info in self._keeper.list(scope, prefix=folder):
                if info.path == f"{folder}{_folder(info.path)}/{_FILE}":
                    yield info


def _folder(path: str) -> str:
    return path.split("/")[-2]


def skill_path(name: str, *, folder: str = "/skills/") -> str:
    """Where the ``SKILL.md`` of a skill stands. Raises :class:`~everlong.errors.InvalidInput`."""
    if folder not in SKILL_FOLDERS:
        raise InvalidInput(f"skills are kept in {', '.join(SKILL_FOLDERS)}, not in {folder!r}")
    problem = _name_problem(name)
    if problem:
        raise InvalidInput(f"skill name {str(name)[:80]!r} {problem}")
    return check_path(f"{folder}{name}/{_FILE}")


def write_skill(name: str, description: str, body: str) -> str:
    """The text of a ``SKILL.md``.

    Raises:
        InvalidInput: the description is empty or over 1,024 characters.
    """
    header = {"name": name, "description": " ".join(description.split())}
    _check(header, name)
    return f"---\n{yaml.safe_dump(header, allow_unicode=True, sort_keys=False, width=10_000)}---\n\n{body.strip()}\n"


def parse(file: MemoryFile) -> Skill:
    """What a ``SKILL.md`` declares. A byte order mark, CRLF, unquoted colons, dates and yes/no are all read as text.

    Raises:
        InvalidInput: it is not UTF-8, has no header, or its header breaks a rule; the message says which.
    """
    try:
        text = file.content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("it is not UTF-8 text") from None
    header, body = _parted(text)
    _check(header, _folder(file.path))
    metadata = header.get("metadata")
    return Skill(
        name=header["name"],
        description=header["description"],
        path=file.path,
        scope=file.scope,
        version=file.version,
        learned=not file.read_only and not str(file.metadata.get("by", "")).startswith(("operator:", "system:")),
        license=_words(header.get("license", "")),
        compatibility=_words(header.get("compatibility", "")),
        allowed_tools=_tools(header.get("allowed-tools", header.get("allowed_tools", ""))),
        metadata={k: _words(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {},
        body=body,
    )


def _parted(text: str) -> tuple[dict[str, Any], str]:
    if not text.lstrip().startswith("---"):
        raise InvalidInput("it has no header: it must begin with a line of ---")
    match = _HEADER.fullmatch(text)
    if match is None:
        raise InvalidInput("its header is never closed with a line of ---")
    if len(match[1]) > _MAX_HEADER:
        raise InvalidInput(f"its header has {len(match[1]):,} characters; {_MAX_HEADER:,} at most")
    header = _read(match[1].replace("\r\n", "\n"))
    if not isinstance(header, dict):
        raise InvalidInput("its header is not a list of name: value lines")
    return {str(key): value for key, value in header.items()}, match[2]


def _read(header: str) -> Any:
    """The header as text, lists and mappings of text; where YAML stumbles over a plain value, once more quoted."""
    try:
        return _load(header)
    except yaml.YAMLError:
        quoted = "\n".join(map(_quoted, header.split("\n")))
    try:
        return _load(quoted)
    except yaml.YAMLError as error:
        raise InvalidInput("its header is not YAML: " + " ".join(str(error).split())[:200]) from None


def _load(text: str) -> Any:
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (BaseLoader makes text, lists and mappings only)
    except RecursionError:
        raise InvalidInput("its header is nested too deeply") from None


def _quoted(line: str) -> str:
    """A line ``name: value``, its value quoted if YAML cannot read it as it stands."""
    match = _PLAIN.fullmatch(line)
    if match is None:
        return line
    try:
        _load(line)
    except yaml.YAMLError:
        return f"{match['key']}: {json.dumps(match['value'].rstrip(), ensure_ascii=False)}"
    return line


def _check(header: dict[str, Any], folder: str) -> None:
    for name in ("name", "description"):
        value = header.get(name)
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(
                f"its header has no {name}" if value is None or not str(value).strip() else f"its {name} is not text"
            )
    problem = _name_problem(header["name"])
    if problem:
        raise InvalidInput(f"its name {header['name'][:80]!r} {problem}")
    if header["name"] != folder:
        raise InvalidInput(f"its name {header['name']!r} is not that of its folder, {folder!r}")
    for name in ("description", "compatibility"):
        length = len(_words(header.get(name, "")))
        if length > _LIMITS[name]:
            raise InvalidInput(f"its {name} has {length:,} characters; {_LIMITS[name]:,} at most")


def _name_problem(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.lower():
        return "is not made of small letters, digits and single hyphens"
    return f"has {len(name)} characters; {_LIMITS['name']} at most" if len(name) > _LIMITS["name"] else ""


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(each for each in value if isinstance(each, str))
    return ""


def _tools(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(each for each in value if isinstance(each, str))
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else ()


def render(skills: Skills, *, budget: int) -> str:
    """A block for a prompt: what each skill is for, so that the agent can load the one it needs; empty if there is
    none. Descriptions are data: markup in them is escaped. What is over ``budget`` tokens is only counted."""
    if not skills.skills:
        return ""
    end = [f"({len(skills.skills)} more are not shown)", "</skills>"]
    lines = ["<skills>", "Load one by its name when a task calls for it; do not guess what it says."]
    for number, skill in enumerate(skills.skills):
        line = f"- {skill.name}: {html.escape(' '.join(skill.description.split()), quote=False)}"
        if estimate_tokens("\n".join([*lines, line, *end])) > budget:
            lines.append(f"({len(skills.skills) - number} more are not shown)")
            break
        lines.append(line)
    return "\n".join([*lines, "</skills>"])
