"""The seams: what each part promises to the others, so that any part can be replaced.

Implementations outside this package inherit the suites in :mod:`everlong.testing` to prove themselves.
Everything here is synchronous; :mod:`everlong.aio` gives the async face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlong.protocols.copies import CopyShelf
from everlong.protocols.index import Indexed, IndexRows, IndexShelf, Revision
from everlong.protocols.models import (
    Calibration,
    ChatModel,
    ChatReply,
    ChatTurn,
    Clock,
    Embedder,
    Extractor,
    NewId,
    TokenCounter,
)
from everlong.protocols.onion import Call, Decision, Middleware, Narrowing, Policy, Request
from everlong.protocols.retention import RetentionShelf
from everlong.protocols.rights import Rights, present_rights, reading_with
from everlong.protocols.search import Corpus, Index
from everlong.protocols.store import (
    Backlog,
    FactShelf,
    FileShelf,
    MessageShelf,
    PassageShelf,
    ProfileShelf,
    SessionShelf,
    Store,
    Transaction,
)
from everlong.protocols.work import (
    ExtractionShelf,
    JobShelf,
    JournalShelf,
    ProposalShelf,
)

if TYPE_CHECKING:
    from everlong.protocols.models import Vectors as Vectors

__all__ = [
    "Backlog",
    "Calibration",
    "Call",
    "ChatModel",
    "ChatReply",
    "ChatTurn",
    "Clock",
    "CopyShelf",
    "Corpus",
    "Decision",
    "Embedder",
    "ExtractionShelf",
    "Extractor",
    "FactShelf",
    "FileShelf",
    "Index",
    "IndexRows",
    "IndexShelf",
    "Indexed",
    "JobShelf",
    "JournalShelf",
    "MessageShelf",
    "Middleware",
    "Narrowing",
    "NewId",
    "PassageShelf",
    "Policy",
    "ProfileShelf",
    "ProposalShelf",
    "Request",
    "RetentionShelf",
    "Revision",
    "Rights",
    "SessionShelf",
    "Store",
    "TokenCounter",
    "Transaction",
    "present_rights",
    "reading_with",
]
