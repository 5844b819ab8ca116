"""The experiments of the papers that counting or simulation can run again: ours beside theirs."""
