"""Skills as seen from a scope."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from everlong.errors import InvalidInput
from everlong.files.skills import Librarian, render, skill_path, write_skill

if TYPE_CHECKING:
    from everlong.memory.scoped import ScopedMemory
    from everlong.records import Skill, Skills

__all__ = ["SkillShelf"]


class SkillShelf:
    """Procedures that an agent loads when it needs them: memory files ``/skills/NAME/SKILL.md``, or the same below
    ``/memories/``, ``/agent/`` or ``/policies/``.

    Those that operators write are read-only to all others and cannot be replaced by a learned one of the same name.
    """

    def __init__(self, scoped: ScopedMemory) -> None:
        self._scope, self._by, self._run, self._files = scoped.scope.home, scoped.by, scoped._run, scoped.files
        self._librarian = Librarian(scoped._memory.parts.files)

    def list(self) -> Skills:
        """Name and description of every skill visible from here, and which are broken and why."""
        return self._run("skills", partial(self._librarian.list, self._scope))

    def load(self, name: str) -> Skill:
        """One skill in full; ``files`` names those beside its ``SKILL.md``, to be read with ``memory.files``.

        Raises:
            NotFound: there is none of that name. InvalidInput: it is broken; the message says how.
        """
        return self._run("skills", partial(self._librarian.load, self._scope), name=name)

    def write(self, name: str, *, description: str, body: str, expected: int = 0, folder: str = "/skills/") -> Skill:
        """Writes a skill over its version ``expected`` (0: a new one). By an operator it becomes read-only.

        Raises:
            InvalidInput: the name is not made of small letters, digits and single hyphens (64 characters at most), or
                the description is empty or over 1,024 characters.
            Conflict, TooLarge, AccessDenied: as for :meth:`everlong.memory.Files.write`.
        """
        if not isinstance(description, str) or not isinstance(body, str):
            raise InvalidInput("a skill's description and body must be text")
        path = skill_path(name, folder=folder)
        operator = self._by.role in {"operator", "system"}
        known = {skill.name: skill for skill in self.list().skills}.get(name)
        if known and not known.learned and known.path != path and not operator:
            raise InvalidInput(f"operators keep a skill named {name!r}; choose another name")
        read_only = True if operator else None
        self._files.write(path, write_skill(name, description, body), expected=expected, read_only=read_only)
        return self.load(name)

    def block(self, *, budget: int = 1000) -> str:
        """The list of skills as a block for a prompt, of ``budget`` tokens at most; empty when there are none."""
        return render(self.list(), budget=budget)
