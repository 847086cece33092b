"""SECURITY.md: what stands against each threat is held by tests, and dependencies are as it says."""

from __future__ import annotations

import re

from support.pages import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ASKS = "supervision/asks/test_permission_asks.py"
LEASES = "supervision/writers/test_lease_processes.py"
HELD = {
    "a repository brings an adapter": (
        "adapters/test_trust.py::test_nothing_of_it_runs_before_trust",
        "adapters/test_trust.py::test_any_change_undoes_the_trust",
        "adapters/test_trust.py::test_the_trust_file_is_the_users_alone",
    ),
    "a shared folder above yours": (
        "policy/test_project.py::test_a_project_that_somebody_else_put_above_is_not_followed",
    ),
    "a child's output forges": (
        "cli/test_output.py::test_foreign_text_is_one_bounded_line_without_control_characters",
        "cli/test_report.py::test_the_text_shows_the_evidence_without_control_characters",
    ),
    "a secret in a prompt": (
        "telemetry/test_canary.py::test_no_byte_of_it_is_exported_logged_or_stored",
        "supervision/pools/test_health.py::test_no_secret_of_a_failures_own_words_reaches_the_file",
    ),
    "another user reads the store": (
        "store/test_database.py::test_the_file_and_its_companions_are_the_owners_alone",
        "supervision/pools/test_health_audit.py::test_a_clear_says_who_when_and_what",
    ),
    "a child asks for more": (
        f"{ASKS}::test_f13_an_ask_at_depth_3_is_seen_at_the_root_and_denied_at_the_deadline",
        "adapters/qwen/test_dispatch.py::test_read_only_work_gets_no_tool_that_changes_something",
        "adapters/acp/test_session.py::test_an_agent_without_a_read_only_mode_gets_no_read_only_work",
    ),
    "a child starts work behind": (
        "supervision/nesting/test_nesting.py::test_a_wrong_token_starts_nothing",
        "supervision/nesting/test_nesting.py::test_f8_nested_spend_is_on_the_same_ledger",
        "supervision/nesting/test_nesting.py::test_f20_children_of_a_writer_borrow_inside_its_scope_and_take_turns",
    ),
    "a process outlives its cancel": (
        "adapters/test_process.py::test_a_tree_that_ignores_term_and_holds_the_pipe_is_gone_after_a_cancel",
        f"{LEASES}::test_f4_a_scope_is_released_after_everything_the_work_left_behind_is_gone",
    ),
}
"""By the beginning of the threat's row."""


def test_what_stands_against_each_threat_is_held_by_tests_that_are_there() -> None:
    threats = re.findall(r"^\| (?!threat|---)([^|]+) \|", PAGE, re.MULTILINE)
    assert [next((begins for begins in HELD if threat.startswith(begins)), threat) for threat in threats] == [
        *HELD
    ]
    for test in (test for tests in HELD.values() for test in tests):
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test


def test_every_dependency_is_pinned_by_version_and_hash() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        entries = re.split(r"\n(?=\S)", file.read_text(encoding="utf-8").strip())
        assert entries
        for entry in entries:
            assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+", entry), entry
            assert "--hash=sha256:" in entry, entry
            assert "://" not in entry, entry
