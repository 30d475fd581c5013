"""OpenTelemetry spans of operations, jobs, extractions and transactions, where the host traces; nothing elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["span", "tracing"]

_API: Final = "opentelemetry.trace"


class _Nothing:
    """Stands for a span where nobody traces."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Takes it and does nothing."""


_NOTHING: Final = _Nothing()


def tracing() -> bool:
    """Whether this process has loaded OpenTelemetry."""
    return _API in sys.modules


@contextmanager
def span(name: str, **attributes: str | float) -> Iterator[Any]:
    """A span ``everlong.<name>`` round the block, in whatever trace the caller is in; its attributes get the same prefix.

    A host that traces has imported OpenTelemetry before, so it is looked for and never loaded here; until a provider is
    set, its own tracer does nothing. An error ends the span as failed under its class; its message, which may quote what
    was said, is not recorded. No attribute holds a text or the id of anybody.
    """
    api = sys.modules.get(_API)
    if api is None:
        yield _NOTHING
        return
    tracer = api.get_tracer("everlong")
    named = {f"everlong.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(
        f"everlong.{name}", attributes=named, record_exception=False, set_status_on_exception=False
    ) as made:
        try:
            yield made
        except Exception as error:
            made.set_attribute("error.type", type(error).__name__)
            made.set_status(api.StatusCode.ERROR)
            raise
