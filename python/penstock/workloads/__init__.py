"""Streaming queries, recorded data and generated keys, for demonstrations, simulations and benchmarks."""
