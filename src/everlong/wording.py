"""How a message is worded for search: what its lexical terms and its vectors are made from.

The side that writes and the side that measures use the same words, so that a figure holds for the product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["lexical_text", "vector_text"]


def lexical_text(content: str, *, speaker: str = "", created_at: datetime | None = None, caption: str = "") -> str:
    """Speaker, day and caption beside the words, so that a name, a month or a picture is found by its word.

    The day is written as an English reader and as a Chinese one would ask for it.
    """
    day = ""
    if created_at is not None:
        day = f"{created_at:%Y-%m-%d} {created_at.day} {created_at:%B} {created_at.year}"
        day += f" {created_at.year}年 {created_at.month}月 {created_at.day}日"
    return " ".join(part for part in (speaker, day, content, caption) if part)


def vector_text(content: str, *, speaker: str = "", caption: str = "") -> str:
    """``Speaker: content [image: caption]``: who speaks matters to the meaning; a date only blurs it."""
    told = f"{speaker}: {content}" if speaker else content
    return f"{told} [image: {caption}]" if caption else told
