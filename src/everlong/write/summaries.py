"""Whether a section of the profile may get the summary that an extractor proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everlong import text
from everlong.records import SECTIONS, Change
from everlong.write.compare import LONGEST, UPLOAD, junk

if TYPE_CHECKING:
    from everlong.records import Batch

__all__ = ["decide_section"]

_LONG: Final = 20
"""Distinct words from which a summary is long enough for a loss to matter."""
_KEPT: Final = 1 / 3
"""A new summary with fewer of a long one's words than this share has dropped most of it."""


def decide_section(name: str, summary: str, batch: Batch) -> Change:
    """One decision: the section changes, waits for review because most of it would be lost, or stays."""
    kept = _without_uploads(text.clean(summary).strip())
    present = batch.profile.sections.get(name)
    before = present.summary if present else ""
    problem = _problem(name, kept, before)
    if problem:
        return Change(kind="reject", reason=f"section {name}: {problem}", section=name, summary=kept)
    if _loses_most(before, kept):
        reason = f"section {name}: the new summary drops most of the present one"
        return Change(kind="hold", reason=reason, section=name, summary=kept)
    return Change(kind="section", reason="the summary changed", section=name, summary=kept)


def _without_uploads(summary: str) -> str:
    if not UPLOAD.search(summary):
        return summary
    spans = [summary[start:end] for start, end in text.sentences(summary)]
    return " ".join(span for span in spans if not UPLOAD.search(span))


def _problem(name: str, kept: str, before: str) -> str:
    if name not in SECTIONS:
        return "no such section"
    if not kept:
        return "an empty summary replaces nothing"
    if kept == before:
        return "unchanged"
    return "" if len(kept) > LONGEST else junk(kept)


def _loses_most(before: str, after: str) -> bool:
    old, new = set(text.terms(before)), set(text.terms(after))
    return len(old) >= _LONG and len(new) < len(old) / 2 and len(old & new) < len(old) * _KEPT
