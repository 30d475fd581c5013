"""The command line: ``everlong --help``."""

from everlong.cli.app import main

__all__ = ["main"]
