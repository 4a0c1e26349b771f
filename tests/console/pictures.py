"""The pictures of `docs/console.md`: taken while its walk is tested, and kept small.

`python -m tests.console.pictures` copies those of the last run to `docs/pictures/`.
"""

from __future__ import annotations

import shutil
from base64 import b64decode, b64encode
from pathlib import Path

from tests.console.browser import PICTURES, Console

TAKEN = PICTURES / "docs"
KEPT = Path(__file__).parent.parent.parent / "docs" / "pictures"
MOST_BYTES = 100_000
"""Of one picture."""
_AS_WEBP = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), {
    width: image.width, height: image.height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.8).split(",")[1];
}"""


def take(console: Console, name: str) -> None:
    """Keep what is shown as a picture of the docs, which a page without a policy writes smaller."""
    png = b64encode(console.page.screenshot(animations="disabled")).decode()
    blank = console.context.new_page()
    webp = b64decode(blank.evaluate(_AS_WEBP, png))
    blank.close()
    assert len(webp) < MOST_BYTES
    TAKEN.mkdir(parents=True, exist_ok=True)
    (TAKEN / f"{name}.webp").write_bytes(webp)


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for picture in sorted(TAKEN.glob("*.webp")):
        shutil.copy(picture, KEPT)
