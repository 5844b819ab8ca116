"""Feeds, which deliver the streams of a question to the query that reads them."""

from penstock.workloads.feeds.feed import Feed
from penstock.workloads.feeds.files import FileFeed

__all__ = ["Feed", "FileFeed"]
