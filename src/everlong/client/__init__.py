"""A client of the server with the face of :class:`~everlong.memory.Memory`: move by changing an address."""

from everlong.client.client import Client
from everlong.client.scoped import RemoteMemory

__all__ = ["Client", "RemoteMemory"]
