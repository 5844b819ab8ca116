"""The part of the benchmarks that is no measuring: statistics, targets, reports. See `benchmarks/README.md`."""
