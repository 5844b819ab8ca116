"""Streaming queries on real data, for demonstrations and benchmarks."""
