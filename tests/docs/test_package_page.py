"""PACKAGE.md is what a package index shows: it stands alone, and says no command but the README's."""

from __future__ import annotations

import re
import tomllib

from support.pages import ROOT, blocks

PAGE = (ROOT / "PACKAGE.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_it_is_the_packages_description_and_leads_to_no_file() -> None:
    assert PROJECT["readme"] == "PACKAGE.md"
    assert re.findall(r"\]\((?!https://)[^)]*\)|<(?:img|a)\b", PAGE) == []


def test_its_blocks_are_those_of_the_readme_and_of_the_sites_first_page() -> None:
    ours = [block.text for block in blocks("PACKAGE.md")]
    known = [block.text for page in ("README.md", "docs/index.md") for block in blocks(page)]
    lines = [line.split("#")[0].strip() for text in known for line in text.splitlines()]
    assert len(ours) == 3
    assert [text for text in ours if text not in known and text.strip() not in lines] == []


def test_every_extra_is_told_of_here_and_on_the_sites_first_page() -> None:
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    installing = first.partition("## Install")[2].partition("## ")[0]
    extras = set(PROJECT["optional-dependencies"])
    assert set(re.findall(r"`custodes\[(\w+)\]`", PAGE)) == extras
    assert set(re.findall(r"`(\w+)` \(", installing)) == extras
