"""What is published, as a stranger has it. Long, and from the package index: with the full tests."""

from __future__ import annotations

import subprocess

import pytest

from support.pages import ROOT

pytestmark = pytest.mark.full


def run(*argv: str) -> str:
    """What it printed, on either stream."""
    ran = subprocess.run(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_the_wheel_and_the_sdist_work_by_pip_uv_and_pipx_and_with_every_extra_alone() -> None:
    assert "with each of acp hub mcp otel overseer alone" in run("scripts/package", "--full")


def test_the_documentation_is_a_site_with_no_link_that_leads_nowhere() -> None:
    assert "No issues found" in run("scripts/docs")
