"""The façade: :class:`Memory` owns the parts, :class:`ScopedMemory` is what every agent, route and command touches."""

from everlong.memory.files import Files
from everlong.memory.inbox import Inbox
from everlong.memory.memory import Memory, Parts, Status
from everlong.memory.scoped import ScopedMemory
from everlong.memory.skills import SkillShelf
from everlong.memory.transfer import Transfer
from everlong.memory.upkeep import Upkeep

__all__ = ["Files", "Inbox", "Memory", "Parts", "ScopedMemory", "SkillShelf", "Status", "Transfer", "Upkeep"]
