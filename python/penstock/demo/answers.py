"""Compare the answers of the demonstration's runs."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.demo.variant import Variant


def judge(work: Path, compared: Sequence[Variant]) -> tuple[str, bool]:
    """Compare the answers of all variants with those of the first, independent of where their batches ended.

    Returns
    -------
    tuple
        A sentence with the result, and whether all answers are equal.
    """
    first = answers(work / compared[0].name)
    differing = []
    for variant in compared[1:]:
        other = answers(work / variant.name)
        if not first.equals(other):
            differing.append(f"{variant.title} ({other.num_rows:,} rows)")
    if differing:
        rows = f"{compared[0].title} ({first.num_rows:,} rows)"
        return f"ANSWERS DIFFER from those of {rows}: {', '.join(differing)}", False
    return f"answers are equal: {first.num_rows:,} rows, each compared in {len(compared)} runs", True


def answers(folder: Path) -> pa.Table:
    """Read all answers of a run, sorted.

    Raises
    ------
    FileNotFoundError
        If the run has no answers.
    """
    files = sorted((folder / "answers").glob("batch=*/*.parquet"))
    if not files:
        raise FileNotFoundError(f"{folder} has no answers")
    # Reading them as one data set would add a column with the number of the batch.
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
