"""An explanation as one HTML page that needs nothing else: no script, no font, no image, no address."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from everlong.read.explain import Explanation, Row

__all__ = ["page"]

_WIDE: Final = 240
_BAR: Final = 80


def page(told: Explanation) -> str:
    """The page: what was asked and how, the waterfall of stages, every candidate with its score, and the block.

    All text of memory is escaped, and a policy in the page forbids every script and request on top.
    """
    trace = told.trace
    used = sum(row.shown for row in told.rows)
    return _template().substitute(
        title=_text(trace.id),
        question=_text(trace.query.text),
        facts="".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in _facts(told)),
        total=f"{told.milliseconds:.1f}",
        stages="".join(_stage(*bar) for bar in _bars(told)),
        shown=used,
        dropped=len(told.rows) - used,
        rows="".join(_row(row, trace.minimum) for row in told.rows),
        block=_block(told),
    )


@cache
def _template() -> Template:
    return Template(files("everlong.read").joinpath("explain.html").read_text("utf-8"))


def _text(value: object) -> str:
    """Safe inside an element and inside a quoted attribute. Control characters, and those that turn the direction of
    what follows, are shown by their number."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in str(value))
    return escape(shown)


def _facts(told: Explanation) -> list[tuple[str, object]]:
    trace = told.trace
    searched = ", ".join(f"{count} × {kind}" for kind, count in trace.searched.items())
    return [
        ("trace", trace.id),
        ("scope", trace.scope),
        ("asked at", f"{trace.at:%Y-%m-%d %H:%M:%S %Z}"),
        ("model", trace.embedder),
        ("index", f"exact, in this process: {searched or 'nothing to search'}"),
        ("settings", ", ".join(f"{name} = {value}" for name, value in told.settings.items())),
    ]


def _bars(told: Explanation) -> list[tuple[str, float, float, float]]:
    scale = _WIDE / (told.milliseconds or 1)
    return [(each.name, each.milliseconds, each.begins * scale, each.milliseconds * scale) for each in told.stages]


def _stage(name: str, milliseconds: float, begins: float, wide: float) -> str:
    bar = f'<rect x="{begins:.1f}" y="4" width="{max(wide, 1):.1f}" height="10"/>'
    return (
        f'<tr><td>{_text(name)}</td><td class="num">{milliseconds:.2f}</td>'
        f'<td><svg width="{_WIDE}" height="18" role="img" aria-label="{milliseconds:.2f} ms">'
        f'<rect class="rail" x="0" y="8" width="{_WIDE}" height="2"/>{bar}</svg></td></tr>'
    )


def _row(row: Row, minimum: float) -> str:
    look = "kept" if row.shown else "gone"
    mark = f'<rect class="mark" x="{_BAR * min(minimum, 1):.1f}" y="0" width="1.5" height="12"/>'
    bar = (
        f'<svg width="{_BAR}" height="12" role="img" aria-label="{row.score:.2f} of 1; threshold {minimum:.2f}">'
        f'<rect class="rail" x="0" y="5" width="{_BAR}" height="2"/>'
        f'<rect x="0" y="2" width="{_BAR * min(max(row.score, 0), 1):.1f}" height="8"/>{mark}</svg>'
    )
    parts = "".join(f"<dt>{_text(name)}</dt><dd>{value:.3f}</dd>" for name, value in row.parts.items())
    return (
        f'<tr><td class="num">{row.score:.2f}{bar}</td>'
        f'<td class="text"><bdi>{_text(row.text)}</bdi><div class="id">{_text(row.kind)} {_text(row.id)}</div></td>'
        f'<td class="{look}">{"used" if row.shown else "dropped"}: {_text(row.reason)}</td>'
        f"<td><details><summary>{len(row.parts)} parts</summary><dl>{parts}</dl></details></td></tr>"
    )


def _block(told: Explanation) -> str:
    trace = told.trace
    if not trace.budget:
        return ""
    left = "".join(f"<li>{_text(each.what)}: {_text(each.reason)}</li>" for each in trace.omitted)
    shown = f"<pre>{_text(trace.block)}</pre>" if trace.block else "<p>Nothing was put into the prompt.</p>"
    heading = f"<h2>Block: {trace.tokens} of {trace.budget} tokens</h2>"
    return heading + shown + (f"<h2>Left out of the block</h2><ul>{left}</ul>" if left else "")
