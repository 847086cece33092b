"""Every page does what it says: its files are written, its commands typed, its Python run, its output shown.

No block is left out: what a reader in an empty project cannot do as it stands is held by a test of its own,
named in ``HELD`` or ``ELSEWHERE``.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from custodes.cli.app import call
from support.pages import ROOT, Block, Command, blocks, commands, missing_line, pages

ELSEWHERE = {
    "scripts/demo": "../.ci/run",
    "cos demo": "cli/test_demo.py::test_as_plain_lines_it_tells_what_happens_and_what_to_do_next",
    "scripts/test": "../.ci/run",
    "uv tool install": "packaging/test_package.py::"
    "test_the_wheel_and_the_sdist_work_by_pip_uv_and_pipx_and_with_every_extra_alone",
    "pip install arize-phoenix": "collector/test_phoenix.py::"
    "test_a_fan_out_of_real_runtimes_is_one_tree_in_a_real_collector",
    "phoenix serve": "collector/test_phoenix.py::"
    "test_a_fan_out_of_real_runtimes_is_one_tree_in_a_real_collector",
    "claude mcp add": "live/test_mcp_configuration.py::"
    "test_the_command_writes_the_configuration_to_which_only_the_limits_are_added",
    "codex mcp add": "live/test_mcp_configuration.py::"
    "test_the_command_writes_the_configuration_to_which_only_the_limits_are_added",
    "gemini mcp add": "live/test_mcp_configuration.py::"
    "test_the_command_writes_the_configuration_to_which_only_the_limits_are_added",
    "npx @modelcontextprotocol/inspector": "mcp/test_inspector.py::"
    "test_the_inspector_lists_the_tools_and_calls_them",
    "hermes cron": "live/test_overseer.py::test_its_cron_runs_a_tick_without_a_model_and_in_silence",
}
"""What commands of a page begin with that are not typed again here, and the test that does."""
HELD = {
    "docs/actors.md": dict.fromkeys(
        ("python", "text"), "test_actors_page.py::test_the_example_prints_what_the_guide_says"
    ),
    "docs/adapters.md": {
        "yaml": "test_adapters_page.py::test_the_page_and_the_example_are_the_same",
        "python": "test_adapters_page.py::test_the_page_and_the_example_are_the_same",
        "bash": "test_adapters_page.py::test_who_follows_the_page_has_an_adapter_that_keeps_the_contract",
        "toml": "test_adapters_page.py::test_its_entry_point_is_of_the_group_that_is_looked_in",
    },
    "docs/hub.md": {"": "test_hub_page.py::test_its_requests_change_the_policy"},
    "docs/howto/hub-api.md": dict.fromkeys(
        ("", "python", "text"), "test_hub_api_page.py::test_its_program_lists_changes_and_follows"
    ),
    "docs/mcp.md": {
        "json": "test_mcp_page.py::test_every_call_of_the_page_is_one_that_the_tools_take",
        "toml": "test_mcp_page.py::test_every_configuration_starts_the_server",
    },
    "docs/observability.md": dict.fromkeys(
        ("bash", "python"),
        "test_observability_page.py::test_what_a_reader_types_and_runs_reaches_a_collector",
    ),
    "docs/overseer.md": {
        "yaml": "test_overseer_page.py::test_its_pieces_of_yaml_load",
        "bash": "test_overseer_page.py::test_its_commands_work_as_typed_and_the_last_runs_until_it_is_ended",
        "ini": "test_overseer_page.py::test_its_unit_is_one_that_systemd_takes",
        "sh": "test_overseer_page.py::test_its_cron_script_is_quiet_and_takes_its_keys_from_its_file",
    },
    "docs/plans.md": {
        "yaml": "test_plans_page.py::test_every_plan_of_the_page_can_be_run",
        "bash": "test_plans_page.py::test_the_commands_bring_the_plan_past_what_nobody_knows",
        "python": "test_plans_page.py::test_the_python_of_the_page_runs",
    },
    "docs/playbook.md": {"bash": "test_playbook_page.py::test_every_command_works_as_typed_in_its_order"},
}
"""By page and language, the tests that hold all blocks of it instead of the reader."""
PROGRAM = """\
import os, sys
if sys.argv[1] == "full":
    print('{"failure": {"category": "capacity", "retry_after_s": 60}}')
    sys.exit(1)
print('{"summary": "seen as %s"}' % os.environ["CUSTODES_ROLE"])
"""


FOLLOWED = [page for page in pages() if any(block.language != "text" for block in blocks(page))]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, a configuration of its own, and a machine with python3 and no agent."""
    for name in [*os.environ]:
        if name.startswith(("OPENAI_", "ANTHROPIC_", "CUSTODES_", "OTEL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def with_agents(project: Path) -> None:
    """Claude Code and Codex are here: enough to configure work for them, which is all such a page does."""
    for name in ("claude", "codex"):
        program = project.parent / "bin" / name
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)


def with_a_program(project: Path) -> None:
    """The runtime is a program that says which role it was, and in its other pool meets a limit."""
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (folder / "look.py").write_text(PROGRAM)
    models = "".join(
        f"  - {{id: {name}, bucket: {name}, argv: [python3, {folder / 'look.py'}, {name}]}}\n"
        for name in ("look", "full")
    )
    (folder / "adapter.yaml").write_text(f"models:\n{models}")
    for line in ("adapters trust command", "init", "supervision enable"):
        assert call(line.split()) == 0


def with_a_limit(project: Path) -> None:
    with_a_program(project)
    assert call(["dispatch", "--role", "analyst", "--model", "full", "What is here?"]) == 1


STAGES = {
    "README.md": with_a_program,
    "docs/howto/cheap-reviewer.md": with_agents,
    "docs/howto/embed.md": with_a_program,
    "docs/howto/limits.md": with_a_limit,
    "docs/howto/two-runtimes.md": with_agents,
    "docs/nesting.md": with_a_program,
}


def elsewhere(command: Command) -> str:
    """The beginning in ``ELSEWHERE`` that the command has; empty where it has none."""
    typed = " ".join(command.words)
    return next((begins for begins in ELSEWHERE if f"{typed} ".startswith(f"{begins} ")), "")


class Reader:
    """Does what a page says, from its top to its end. ``out`` is what the last thing it ran has printed."""

    def __init__(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = project
        self.capsys = capsys
        self.variables: dict[str, str] = {}
        self.out = ""

    def follow(self, block: Block) -> None:
        match block.language:
            case "text":
                missing = missing_line(block.text, self.out) if self.out else None
                assert missing is None, f"{missing!r} was not printed, but:\n{self.out}"
                self.out = ""
            case "bash":
                self.out = "".join(self.typed(command) for command in commands(block.text, self.variables))
            case "python" if block.title and "/" in block.title:
                self.write(block)
            case "python":
                self.write(block)
                self.out = self.ran(block)
            case "yaml" | "json" | "toml" if block.title:
                self.write(block)
            case language:
                raise AssertionError(f"nobody knows what to do with a block of {language or 'no language'}")

    def write(self, block: Block) -> None:
        file = self.project / (block.title or "page.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")

    def ran(self, block: Block) -> str:
        """Its own words, run in this process: warnings are errors in here."""
        self.capsys.readouterr()
        code = compile(block.text, block.title or "page.py", "exec")
        exec(code, {"__name__": "__main__"})  # noqa: S102 - the page's own words
        return self.capsys.readouterr().out

    def typed(self, command: Command) -> str:
        program, *words = command.words
        if elsewhere(command):
            return ""
        assert program == "cos", f"nobody has typed {' '.join(command.words)} here"
        self.capsys.readouterr()
        words = list(words)
        code = call(words)
        out, err = self.capsys.readouterr()
        assert code == command.code, (command, out, err)
        for name, pattern in (("RUN", "plan run"), ("CONVERSATION", "conversation")):
            if found := re.findall(rf"^{pattern}: (\S+)$", out, re.MULTILINE):
                self.variables[name] = found[-1]
        return out


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_reader_who_does_what_the_page_says_sees_what_it_says(
    page: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if page in STAGES:
        STAGES[page](project)
    reader = Reader(project, capsys)
    for block in blocks(page):
        if block.language in HELD.get(page, {}):
            continue
        try:
            reader.follow(block)
        except Exception as error:
            error.add_note(f"{page}, line {block.line}")
            raise


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_to_a_file_and_from_the_site_to_one_of_the_site(page: str) -> None:
    """Anchors, and the site's navigation, are checked as `scripts/docs` builds it."""
    text = re.sub(
        r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        place = (ROOT / page).parent / link
        assert place.exists(), link
        assert page == "README.md" or place.resolve().is_relative_to(ROOT / "docs"), link


def test_the_site_leads_to_every_page() -> None:
    navigation = re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    assert sorted(f"docs/{page}" for page in navigation) == [page for page in pages() if page != "README.md"]


def test_every_stage_is_that_of_a_page() -> None:
    assert [page for page in STAGES if page not in FOLLOWED] == []


def test_what_is_held_elsewhere_is_on_a_page_and_held_by_a_test_that_is_there() -> None:
    languages = {page: {block.language for block in blocks(page)} for page in pages()}
    assert [page for page, held in HELD.items() if not held.keys() <= languages[page]] == []
    typed = {
        elsewhere(command)
        for page in pages()
        for block in blocks(page)
        if block.language in ("bash", "")
        for command in commands(block.text, {})
    }
    assert ELSEWHERE.keys() - typed == set()
    here = [f"docs/{test}" for held in HELD.values() for test in held.values()]
    for test in (*here, *ELSEWHERE.values()):
        file, _, name = test.partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert (f"def {name}(" in text) if name else test == "../.ci/run", test


def test_every_command_that_ci_types_is_in_its_script() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    for command, place in ELSEWHERE.items():
        assert place != "../.ci/run" or any(line.startswith(command) for line in script), command


def test_every_fence_is_a_block_that_the_reader_sees() -> None:
    for page in pages():
        fences = re.findall(r"^[ \t>]*(?:```|~~~)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page


def test_the_host_of_the_readme_is_the_same_on_trio(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_a_program(project)
    (host,) = (block for block in blocks("README.md") if block.language == "python")
    on_trio = host.text.replace("import asyncio ", "import trio ").replace(
        "asyncio.run(main())", "trio.run(main)"
    )
    printed = [
        [line.split()[:2] for line in Reader(project, capsys).ran(block).splitlines()]
        for block in (host, host._replace(text=on_trio))
    ]
    assert "trio.run" in on_trio
    assert printed == [[["analyst", "done"], ["architect", "done"]]] * 2
