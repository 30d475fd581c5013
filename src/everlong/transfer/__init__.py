"""Memory out of one store and into another: a stream of lines that loses nothing, checked on the way in."""

from everlong.transfer.export import write
from everlong.transfer.format import FORMAT, VERSION, json_schema
from everlong.transfer.load import Gate, Loader

__all__ = ["FORMAT", "VERSION", "Gate", "Loader", "json_schema", "write"]
