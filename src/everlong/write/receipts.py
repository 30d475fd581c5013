"""Receipts: what was erased, in numbers, signed so that it can be shown later."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlong.records import Receipt

__all__ = ["sign", "verify_receipt"]


def sign(receipt: Receipt, key: str = "") -> Receipt:
    """The receipt with its digest, and with its signature if there is a ``key``."""
    digest = _digest(receipt)
    return replace(receipt, digest=digest, signature=_signature(digest, key) if key else "")


def verify_receipt(receipt: Receipt, key: str) -> bool:
    """Whether ``receipt`` was signed with ``key`` and not a field of it was changed since; false for an unsigned one."""
    if not key or not receipt.signature or receipt.digest != _digest(receipt):
        return False
    return hmac.compare_digest(receipt.signature.encode(), _signature(receipt.digest, key).encode())


def _digest(receipt: Receipt) -> str:
    told = [receipt.id, receipt.scope.parts, receipt.at.isoformat(), receipt.by, sorted(receipt.counts.items())]
    return hashlib.sha256(json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def _signature(digest: str, key: str) -> str:
    return hmac.new(key.encode(), digest.encode(), hashlib.sha256).hexdigest()
