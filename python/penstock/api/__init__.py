"""The Python API for PySpark applications."""
