"""The sidecar of an executor: it carries messages to and from the executors of other processes and hosts."""
