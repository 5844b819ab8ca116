"""Processes beside Spark: the planner sidecar of the driver, and the transfer sidecar of an executor."""
