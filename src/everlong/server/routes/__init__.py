"""The routes under ``/v1``. Each translates one request into one call of memory, and decides nothing."""

from everlong.server.routes import facts, files, oversight, questions, system, talk

__all__ = ["ROUTERS"]

ROUTERS = (talk.router, facts.router, questions.router, files.router, oversight.router, system.router)
