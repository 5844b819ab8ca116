"""The planner sidecar: a process beside the driver that makes plans. Its protocol is `docs/PROTOCOL.md`, section 9."""
