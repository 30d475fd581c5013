"""From a question to what is remembered of it."""

from everlong.read.compose import compose
from everlong.read.reader import Reader
from everlong.read.weights import Weights

__all__ = ["Reader", "Weights", "compose"]
