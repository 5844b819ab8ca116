"""The documentation agrees with the tree."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DECISIONS = ROOT / "docs/decisions"
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "conf").rglob("*.md"))
    if ".venv" not in path.parts
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
REPLACED = re.compile(r" \(replaced by (\d{3})\)$")


def row(record: Path) -> str:
    number, title = record.read_text().splitlines()[0].removeprefix("# ").split(": ", 1)
    assert record.name.startswith(f"{number}-"), f"{record.name} has the number {number}"
    replaced = REPLACED.search(title)
    status = f"replaced by {replaced[1]}" if replaced else "accepted"
    return f"| {number} | [{REPLACED.sub('', title)}]({record.name}) | {status} |"


def test_the_index_of_decisions_lists_each_with_its_title_and_status():
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    listed = [line for line in (DECISIONS / "README.md").read_text().splitlines() if re.match(r"\| \d", line)]
    assert listed == [row(record) for record in records]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_have_existing_targets(page):
    targets = [target.split("#")[0] for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    assert not missing


def error_classes() -> set[str]:
    """Return the error classes that the sources raise or log."""
    sources = [
        path
        for folder in ("jvm/src/main", "jvm/shims", "plugin", "python/penstock")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".scala", ".java", ".py"} and not {"target", "test"} & set(path.relative_to(ROOT).parts)
    ]
    return {name for path in sources for name in re.findall(r"\bPENSTOCK_[A-Z_]*[A-Z]\b", path.read_text())}


def test_the_registry_has_exactly_the_error_classes_of_the_sources():
    registry = json.loads((ROOT / "jvm/src/main/resources/io/penstock/error-conditions.json").read_text())
    assert error_classes() == registry.keys()
    assert list(registry) == sorted(registry)
