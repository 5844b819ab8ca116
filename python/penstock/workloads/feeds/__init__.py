"""Where a query reads the streams of a question, and how rows get there."""

from penstock.workloads.feeds.feed import Feed
from penstock.workloads.feeds.files import FileFeed

__all__ = ["Feed", "FileFeed"]
