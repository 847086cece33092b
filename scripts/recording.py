#!/usr/bin/env python3
"""Records `cos demo` on a real terminal and writes it as an animated SVG: docs/images/demo.svg.

A frame stands for as long as it stood in the run; those that differ in nothing but a running clock are one.
Who asked for less motion, and a viewer without animation, see the last.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.terminal import Frame, on_terminal  # noqa: E402 - the tests' terminal is ours too

PLACE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 104, 40
HOLD_S = 6.0
"""How long the last frame stands before the recording begins again."""
FACE = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
FRAME = "{styles}\n@@{matrix}@@{width} {height} {line_height}"


def distinct(frames: list[Frame]) -> list[Frame]:
    """Those where something happened, each at its own time."""
    kept = frames[:1]
    for frame in frames[1:]:
        if frame.words != kept[-1].words:
            kept.append(frame)
    return [*kept[:-1], Frame(kept[-1].at, frames[-1].text)]


def drawn(number: int, frame: Frame) -> tuple[str, str]:
    """The frame's style rules and its lines, as rich draws them, without its window and its web fonts."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True)
    console.print(Text.from_ansi(f"\x1b[1m$ cos demo\x1b[0m\n{frame.text}"), no_wrap=True)
    svg = console.export_svg(code_format=FRAME, theme=MONOKAI, unique_id=f"f{number}")
    styles, matrix, _ = svg.split("@@")
    return styles.strip(), re.sub(r' clip-path="[^"]*"', "", matrix).strip()


def animated(frames: list[Frame]) -> str:
    total = frames[-1].at - frames[0].at + HOLD_S
    height = 30 + round(24.4 * (2 + max(frame.text.count("\n") + 1 for frame in frames)))
    width = round(12.2 * COLUMNS) + 30
    rules, groups = [], []
    for number, frame in enumerate(frames):
        styles, lines = drawn(number, frame)
        begins = (frame.at - frames[0].at) / total * 100
        ends = (frames[number + 1].at - frames[0].at) / total * 100 if frame is not frames[-1] else 100
        rules.append(styles)
        rules.append(
            f"@keyframes k{number}{{0%{{visibility:{'visible' if number == 0 else 'hidden'}}}"
            f"{begins:.2f}%{{visibility:visible}}{ends:.2f}%,100%{{visibility:hidden}}}}"
        )
        rules.append(f"#g{number}{{animation:k{number} {total:.1f}s step-end infinite}}")
        shown = "visible" if frame is frames[-1] else "hidden"
        groups.append(f'<g id="g{number}" visibility="{shown}" transform="translate(15,15)">{lines}</g>')
    rules.append("@media (prefers-reduced-motion:reduce){g{animation:none!important}}")
    told = "eight children under supervision: one pool meets its limit, another covers, one probe heals it"
    head = f'viewBox="0 0 {width} {height}" role="img" aria-label="cos demo: {told}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {head}>',
            f"<style>text{{font:20px {FACE};white-space:pre}}",
            *rules,
            "</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0c0c0c"/>',
            *groups,
            "</svg>\n",
        )
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        given = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": f"{home}/config"}
        cos = [sys.executable, "-m", "custodes.cli", "demo"]
        shown = on_terminal(cos, cwd=Path(home), environment=given, columns=COLUMNS, rows=ROWS)
    if shown.code != 0:
        sys.exit(shown.text)
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_text(animated(distinct(shown.frames)), encoding="utf-8")
    sys.stdout.write(f"{PLACE.relative_to(ROOT)}: {PLACE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
