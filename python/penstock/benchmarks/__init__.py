"""Launching, statistics, targets and reports of the benchmarks, without their programs. See `benchmarks/README.md`."""
