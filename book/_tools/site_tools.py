"""What the tools that look at the built site share: its pages in order, and a browser."""

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SETTLED = "() => document.fonts.ready.then(() => window.MathJax?.startup?.promise).then(() => {})"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ARGUMENTS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync""".split()
NO_BROWSER = """error: expected Chromium on the path, under one of the names {names}; found none. To get it:
  Debian, Ubuntu  sudo apt-get install chromium
  elsewhere       .venv/bin/playwright install chromium"""


def pages(toc=ROOT / "_toc.yml"):
    """Pages in the order of the table of contents, each with its depth: [("index", 0), ("notebooks/...", 0), ...]."""

    def walk(entry, depth):
        yield entry.get("file") or entry["root"], depth
        for section in entry.get("sections", []):
            yield from walk(section, depth + 1)

    table = yaml.safe_load(Path(toc).read_text(encoding="utf-8"))
    chapters = [chapter for part in table["parts"] for chapter in part["chapters"]]
    return [page for entry in ({"root": table["root"]}, *chapters) for page in walk(entry, 0)]


@contextmanager
def browser():
    """Chromium of this machine, or the one that Playwright installed; without either, the program ends and says so."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = next(filter(None, map(shutil.which, NAMES)), own)
        if not Path(found).exists():
            sys.exit(NO_BROWSER.format(names=", ".join(NAMES)))
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()
