"""Exact search in this process over cached buckets, the same ranking on every database."""

from everlong.search.bucket import Bucket
from everlong.search.cache import BucketIndex
from everlong.search.corpus import BucketCorpus

__all__ = ["Bucket", "BucketCorpus", "BucketIndex"]
