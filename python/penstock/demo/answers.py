"""Whether runs answered the same."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.demo.variant import Variant


def judge(work: Path, compared: Sequence[Variant]) -> tuple[str, bool]:
    """Compare every row of every variant with the first one's, wherever their batches ended.

    Returns
    -------
    tuple
        What was found, in words; whether all are equal.
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
    """Read all that a run answered, rows sorted.

    Raises
    ------
    FileNotFoundError
        Where it answered nothing at all.
    """
    files = sorted((folder / "answers").glob("batch=*/*.parquet"))
    if not files:
        raise FileNotFoundError(f"{folder} has no answers")
    # Not as one data set: that would make a column of the batch's number.
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
