"""Print the path of the jar for a Spark version: spark-submit --jars $(penstock jar)."""

import argparse

from penstock.api.jars import jar_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--spark", metavar="VERSION", help="version of Spark, such as 4.2.0 (default: that of the installed PySpark)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the path."""
    if arguments.spark is None:
        import pyspark  # noqa: PLC0415, not needed where the version is given

        arguments.spark = pyspark.__version__
    print(jar_for(arguments.spark))
    return 0
