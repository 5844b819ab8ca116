"""Ways to run the question's query."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """One way.

    Parameters
    ----------
    name
        Of its folder.
    title
        For people, short.
    how
        What it is, in words.
    penstock
        Whether with Penstock.
    conf
        Spark's settings.
    """

    name: str
    title: str
    how: str
    penstock: bool
    conf: tuple[tuple[str, str], ...] = ()


def variants(cores: int) -> tuple[Variant, ...]:
    """Plain Spark as it comes, plain Spark as one who knows this machine would set it, Penstock as it comes."""
    return (
        Variant("default", "plain Spark", "as it comes: 200 partitions", False),
        Variant(
            "tuned",
            "tuned Spark",
            f"by hand to this machine: {cores} partitions, one for each core",
            False,
            (("spark.sql.shuffle.partitions", str(cores)),),
        ),
        Variant("penstock", "Penstock", "as it comes, with no tuning", True),
    )
