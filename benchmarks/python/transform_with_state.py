"""Measure batches of transformWithState in Python: the PySpark part of `penstock bench overhead`.

spark-submit starts this program with the options of the Scala program. It starts the queries, and the Scala program
runs their batches.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, lit, pmod
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

OPERATOR = "transformWithState-python"


class Counter(StatefulProcessor):
    """Counts the rows of each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state, which is one number."""
        self.seen = handle.getValueState("count", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Count a key's rows."""
        before = self.seen.get()
        n = (before[0] if before is not None else 0) + sum(1 for _ in rows)
        self.seen.update((n,))
        yield Row(k=key[0], count=n)

    def close(self) -> None:
        """Do nothing, because there are no resources to release."""


def main(arguments: list[str]) -> None:
    """Start a query in every setup, and compare them."""
    spark = SparkSession.builder.getOrCreate()
    context = spark.sparkContext
    jvm: Any = context._jvm
    bench = jvm.io.penstock.benchmarks.PythonOverhead(spark._jsparkSession, arguments)
    try:
        for manager in bench.managers():
            for setup in bench.setups(OPERATOR, manager):
                session = SparkSession(context, jsparkSession=setup.session(spark._jsparkSession))
                numbers = DataFrame(bench.numbers(setup, session._jsparkSession), session)
                counts = (
                    numbers.select(pmod(col("value"), lit(bench.keys())).alias("k"))
                    .groupBy("k")
                    .transformWithState(Counter(), "k long, count long", "Update", "None")
                )
                query = (
                    counts.writeStream.format("noop")
                    .outputMode("update")
                    .options(**dict(setup.optionsForPython()))
                    .option("checkpointLocation", setup.checkpoint().toString())
                    .start()
                )
                bench.add(setup, query._jsq)
            bench.compare()
    finally:
        bench.close()
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
