"""Processes that run beside Spark: the driver's planner sidecar, and the executors' transfer sidecars."""
