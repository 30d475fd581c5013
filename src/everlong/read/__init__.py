"""From a question to what is remembered of it."""

from everlong.read.compose import compose
from everlong.read.rank import Weights
from everlong.read.reader import Reader

__all__ = ["Reader", "Weights", "compose"]
