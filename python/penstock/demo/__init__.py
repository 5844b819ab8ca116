"""The demonstration: one question on real data, answered by plain Spark and under Penstock, and compared."""
