"""The onion: every operation of a scoped memory passes the same skins, outermost first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everlong.protocols import Call, Middleware

__all__ = ["compose"]


def compose(middleware: Sequence[Middleware], operation: Callable[[Call], Any]) -> Callable[[Call], Any]:
    """``operation`` wrapped in ``middleware``; the first of them sees the call first and the result last."""
    handler = operation
    for skin in reversed(middleware):
        handler = partial(skin, handler=handler)
    return handler
