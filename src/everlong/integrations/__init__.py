"""One memory behind every host: each module here speaks one host's dialect and decides nothing.

The core never imports a host. Each module needs the extra of its host and says so when it is missing.
"""
