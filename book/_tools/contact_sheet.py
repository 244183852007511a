"""Every page of the built site at three widths, light and dark, side by side: ``contact_sheet.py _build/html OUT``.

OUT/index.html shows the pictures, each page in a row, and says under each what went wrong: scripts, requests, overflow.
"""

import shutil
import sys
import tempfile
from itertools import product
from pathlib import Path

from site_tools import OVERFLOW, SETTLED, browser, pages

LOOKS = list(product(("light", "dark"), (360, 768, 1280)))
FRAME = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Contact sheet</title><style>
body {{ font: 14px sans-serif; background: #888 }} h2 {{ margin: 1em 0 .3em }}
.row {{ display: flex; gap: 8px; align-items: start }} figure {{ margin: 0; background: #fff }}
img {{ display: block; height: 900px; object-fit: cover; object-position: top }}
figcaption {{ padding: 4px; max-width: 300px }} b {{ color: #b00 }}</style>{rows}</html>
"""


def look(chromium, html, name, theme, width, picture):
    """Take a picture of a whole page, and return what went wrong on it."""
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=theme, device_scale_factor=0.75)
    problems = []
    page.on("requestfailed", lambda request: problems.append(f"not loaded: {request.url}"))
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((html / f"{name}.html").as_uri(), wait_until="load")
    page.evaluate(SETTLED)
    if (overflow := page.evaluate(OVERFLOW)) > 0:
        problems.append(f"{overflow} px too wide")
    page.screenshot(path=picture, full_page=True)
    page.close()
    return problems


def contact_sheet(html, output):
    """Make the contact sheet of the site in a folder; an older one is replaced when the new one is complete."""
    rows = []
    with browser() as chromium, tempfile.TemporaryDirectory(dir=output.parent, prefix="contact-sheet-") as scratch:
        for name, _ in pages():
            rows.append(f"<h2>{name}</h2><div class=row>")
            for theme, width in LOOKS:
                file = f"{name.replace('/', '-')}-{width}-{theme}.png"
                problems = look(chromium, html, name, theme, width, Path(scratch) / file)
                note = f"<figcaption>{width} px, {theme} <b>{'; '.join(problems)}</b></figcaption>"
                rows.append(f'<figure><a href="{file}"><img src="{file}" alt=""></a>{note}</figure>')
            rows.append("</div>")
        (Path(scratch) / "index.html").write_text(FRAME.format(rows="\n".join(rows)), encoding="utf-8")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(scratch, output)


if __name__ == "__main__":
    contact_sheet(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
