"""Runs the Python blocks of Markdown pages one after another, in one process, each in a namespace of its own.

Arguments are the pages. The last line of standard output is a JSON object: null for each block, named `PAGE:LINE`,
or the traceback of its error.
"""

import json
import re
import sys
import traceback
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Names and sources of a page's Python blocks."""
    text = page.read_text()
    return [(f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}", found[1]) for found in BLOCK.finditer(text)]


def run(name: str, source: str) -> str | None:
    try:
        exec(compile(source, name, "exec"), {"__name__": "__main__"})  # noqa: S102
    except BaseException:  # A block may also exit.
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    results = {name: run(name, source) for page in sys.argv[1:] for name, source in blocks(Path(page))}
    print("\n" + json.dumps(results), flush=True)
