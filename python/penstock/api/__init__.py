"""What a PySpark application calls."""
