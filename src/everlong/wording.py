"""What search reads of a message: its words with who said them and when, and the text that its vector stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["lexical_text", "vector_text"]


def lexical_text(content: str, *, speaker: str = "", created_at: datetime | None = None, caption: str = "") -> str:
    """The words under which a message is found: speaker, text, picture caption and date.

    Speaker and date stand in the words because questions name both ("what did Ann say in March?").
    """
    date = f"{created_at:%Y-%m-%d %B}" if created_at else ""
    return "\n".join(part for part in (vector_text(content, speaker=speaker, caption=caption), date) if part)


def vector_text(content: str, *, speaker: str = "", caption: str = "") -> str:
    """``Speaker: text [image: caption]``: the wording whose vectors recalled best; a date in it did not help."""
    said = f"{speaker}: {content}" if speaker else content
    return f"{said} [image: {caption}]" if caption else said
