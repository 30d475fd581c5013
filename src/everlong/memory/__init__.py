"""The façade: :class:`Memory` owns the parts, :class:`ScopedMemory` is what every agent, route and command touches."""

from everlong.memory.inbox import Inbox
from everlong.memory.memory import Memory, Parts, Status
from everlong.memory.scoped import ScopedMemory

__all__ = ["Inbox", "Memory", "Parts", "ScopedMemory", "Status"]
