"""Proof for implementers, fakes for testers.

Inherit :class:`everlong.testing.stores.StoreTests` to prove a store; take clocks, ids and models whose answers you
choose from :mod:`everlong.testing.fakes`. To see pytest's full assertion messages, put
``pytest.register_assert_rewrite("everlong.testing")`` into your ``conftest.py`` before you import a suite.
"""

from __future__ import annotations

from everlong.testing.fakes import CountingIds, FakeClock, ScriptedChatModel, TableEmbedder

__all__ = ["CountingIds", "FakeClock", "ScriptedChatModel", "TableEmbedder"]
