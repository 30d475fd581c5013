"""The proof of a store: inherit, give one fixture, run.

::

    class TestMyStore(StoreTests):
        @pytest.fixture
        def store(self) -> Iterator[Store]:
            opened = open_my_store(clock=FakeClock(tick=0.001), new_id=CountingIds())
            yield opened
            opened.close()

Each test gets an empty store. A test stands for one promise of :mod:`everlong.protocols`, so a failing name says
which promise is broken. The chapters can be inherited one by one while a store is being written.
"""

from __future__ import annotations

from everlong.testing.erasing import EraseTests
from everlong.testing.paging import PagingTests
from everlong.testing.rights import RightsTests
from everlong.testing.shelves_copies import CopyTests
from everlong.testing.shelves_facts import FactTests
from everlong.testing.shelves_kept import FileTests, JournalTests, ProfileTests
from everlong.testing.shelves_past import PastTests
from everlong.testing.shelves_retention import RetentionTests
from everlong.testing.shelves_review import ExtractionTests, ProposalTests
from everlong.testing.shelves_search import IndexTests
from everlong.testing.shelves_talk import MessageTests, SessionTests
from everlong.testing.shelves_work import JobTests
from everlong.testing.units import TransactionTests

__all__ = ["StoreTests"]


class StoreTests(
    ProfileTests,
    FactTests,
    MessageTests,
    SessionTests,
    FileTests,
    JobTests,
    JournalTests,
    ProposalTests,
    ExtractionTests,
    RetentionTests,
    PagingTests,
    IndexTests,
    PastTests,
    CopyTests,
    EraseTests,
    RightsTests,
    TransactionTests,
):
    """Every promise of every shelf; needs a fixture ``store``."""
