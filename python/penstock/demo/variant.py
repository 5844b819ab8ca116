"""Variants of running the query of a question."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """A configuration that the demonstration runs.

    Parameters
    ----------
    name
        Name of the variant, which is also that of its folder.
    title
        Short title that is shown.
    how
        Description of the configuration.
    penstock
        Whether Penstock is enabled.
    conf
        Additional settings of Spark.
    """

    name: str
    title: str
    how: str
    penstock: bool
    conf: tuple[tuple[str, str], ...] = ()


def variants(cores: int) -> tuple[Variant, ...]:
    """Return the variants: plain Spark with its defaults, plain Spark tuned for this machine, and Penstock."""
    return (
        Variant("default", "plain Spark", "defaults: 200 partitions", False),
        Variant(
            "tuned",
            "tuned Spark",
            f"tuned for this machine: {cores} partitions, one for each core",
            False,
            (("spark.sql.shuffle.partitions", str(cores)),),
        ),
        Variant("penstock", "Penstock", "defaults, without tuning", True),
    )
