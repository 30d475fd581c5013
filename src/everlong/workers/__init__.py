"""Long work, done in the background: jobs are rows in the same database, claimed by workers."""

from everlong.workers.worker import Retry, Worker

__all__ = ["Retry", "Worker"]
