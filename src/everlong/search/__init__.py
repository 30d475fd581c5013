"""Exact search in this process over cached buckets, the same ranking on every database."""

from everlong.search.bucket import Bucket, BucketCorpus
from everlong.search.cache import BucketIndex

__all__ = ["Bucket", "BucketCorpus", "BucketIndex"]
