"""The transfer sidecar of an executor: carries messages to and from executors in other processes and on other hosts."""
