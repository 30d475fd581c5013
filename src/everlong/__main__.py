"""``python -m everlong`` is the command line."""

from everlong.cli import main

main()
