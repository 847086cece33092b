"""``cos overseer`` as a person and a cron meet it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cos import Cos
from support.health_provider import HealthProvider, health_provider
from support.overseer import SEED_FILE, kept_in_a_file


@pytest.fixture
def home(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hermes home whose two profiles have a model each; no hermes is run by what only looks."""
    folder = project.parent / "hermes"
    for profile, model in (("worker-code", "opencode-go/kimi-k2.7-code"), ("worker-fast", "their/own")):
        (folder / "profiles" / profile).mkdir(parents=True)
        (folder / "profiles" / profile / "config.yaml").write_text(f"model: {{default: {model}}}\n")
    monkeypatch.setenv("HERMES_HOME", str(folder))
    for name in ("CUSTODES_NOTIFY_TELEGRAM", "TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID"):
        monkeypatch.delenv(name, raising=False)
    (folder / "supervisor.yaml").write_bytes(SEED_FILE.read_bytes())
    return folder


@pytest.fixture
def provider(home: Path) -> Iterator[HealthProvider]:
    """The seed's one address, answered."""
    with health_provider() as running:
        text = SEED_FILE.read_text().replace("http://localhost:20127/v1/models", running.url)
        (home / "supervisor.yaml").write_text(text)
        yield running


@pytest.fixture
def by_program(home: Path) -> Path:
    """The profile ``w``, kept in the file that this is; its providers are down."""
    return kept_in_a_file(home)


def test_describe_is_the_agent_card(cos: Cos) -> None:
    card = cos("overseer", "describe", "--format", "json").document
    assert (card["agent"], card["runtime"], card["model"]) == ("supervisor", "hermes-cron", None)
    assert card["capabilities"] == ["provider_health_check", "profile_switch", "incident_logging"]
    assert "model: none (script only)" in cos("overseer", "describe").out


def test_simulate_says_what_every_profile_would_do_and_asks_nobody(
    cos: Cos, home: Path, project: Path
) -> None:
    done = cos("overseer", "simulate", "--provider", "opencode-go", "--status", "429")
    assert done.code == 0
    assert (
        "worker-code: switch to fallback → grok-cli/grok-4.5 (opencode-go/kimi-k2.7-code is limited)"
        in done.out
    )
    assert "worker-fast: alert only (a person set it to their/own" in done.out
    assert "there is no Hermes profile 'worker-review'" in done.out
    assert not (project / ".coding-os").exists()
    dead = cos("overseer", "simulate", "--provider", "opencode-go", "--status", "refused", "--format", "json")
    first = dead.document["decisions"][0]
    assert (first["action"], first["to"]) == (
        "switch_to_fallback",
        {"provider": "grok-cli", "model": "grok-4.5"},
    )
    misconfigured = cos("overseer", "simulate", "--provider", "opencode-go", "--status", "405")
    assert "worker-code: none" in misconfigured.out


def test_explain_names_the_row_and_how_each_choice_stands(cos: Cos, provider: HealthProvider) -> None:
    assert cos("overseer", "tick").code == 0
    done = cos("overseer", "explain", "worker-code")
    assert done.out.splitlines()[1].split() == ["opencode-go/kimi-k2.7-code", "well", "now"]
    assert [
        row["stands"] for row in cos("overseer", "explain", "worker-code", "--format", "json").document["row"]
    ] == [*("well", "well", "well")]
    wrong = cos("overseer", "explain", "worker-cod")
    assert wrong.code == 2
    assert "did you mean 'worker-code'?" in wrong.err


def test_a_quiet_tick_prints_what_happened_and_nothing_else(cos: Cos, provider: HealthProvider) -> None:
    first = cos("overseer", "tick", "--quiet")
    assert "opened: worker-fast: a person set it to their/own" in first.out
    assert cos("overseer", "tick", "--quiet").out == ""
    assert cos("overseer", "tick").out == "asked 4 of 4 providers: 4 well\n"
    assert provider.methods == ["GET"] * 3


def test_a_dry_run_says_what_it_would_do_and_opens_nothing(cos: Cos, provider: HealthProvider) -> None:
    provider.status = 429
    done = cos("overseer", "tick", "--dry-run")
    assert (
        "would alert only: worker-code (opencode-go/kimi-k2.7-code is limited, and nothing in its row"
        in done.out
    )
    assert cos("overseer", "incidents").out == "there were none\n"


def test_status_and_incidents_tell_how_it_stands(cos: Cos, provider: HealthProvider) -> None:
    provider.status = 402
    cos("overseer", "tick")
    view = cos("overseer", "status", "--format", "json").document
    assert view["pid"] is None
    assert {each["condition"] for each in view["providers"]} == {"needs_person"}
    causes = {incident["cause"] for incident in view["active"]}
    assert {"outage:opencode-go:worker-code", "hand:grok-cli:worker-fast"} <= causes
    text = cos("overseer", "status").out
    assert "overseer: not running" in text
    assert "needs person" in text
    listed = cos("overseer", "incidents", "--format", "json", "-n", "1").document["incidents"]
    assert len(listed) == 1
    assert cos("overseer", "incidents", "-n", "0").code == 2


def test_a_switch_by_hand_is_made_held_and_given_back(cos: Cos, by_program: Path) -> None:
    first = cos("overseer", "switch", "w", "b/two")
    assert first.out == "w: a/one → b/two (held there until `primary` or `auto`)\n"
    assert by_program.read_text() == "b/two"
    again = cos("overseer", "switch", "w", "b/two")
    assert again.out == "w: on b/two already (held there until `primary` or `auto`)\n"
    (view,) = cos("overseer", "status", "--format", "json").document["profiles"]
    assert (view["model"], view["by_hand"]) == ("b/two", True)
    done = cos("overseer", "switch", "w", "primary", "--format", "json").document
    assert (done["old_model"], done["new_model"], done["held"], done["by"]) == (
        "b/two",
        "a/one",
        False,
        "cli",
    )
    listed = cos("overseer", "incidents", "--format", "json").document["incidents"]
    assert [(each["by"], each["status"]) for each in listed] == [("cli", "resolved")] * 2


def test_a_switch_that_cannot_be_says_what_would_work_and_leaves_no_trace(
    cos: Cos, by_program: Path, project: Path
) -> None:
    unknown = cos("overseer", "switch", "v", "b/two")
    assert (unknown.code, "there is no profile 'v'" in unknown.err) == (2, True)
    assert not (project / ".coding-os" / "custodes.db").exists()
    near = cos("overseer", "switch", "w", "b/too")
    assert (near.code, "did you mean 'b/two'?" in near.err) == (2, True)
    for _ in range(3):
        cos("overseer", "tick")
    unwell = cos("overseer", "switch", "w", "b/two", "--format", "json")
    assert unwell.code == 1
    assert unwell.document["error"] == {
        "kind": "overseer",
        "message": "b/two is dead (no connection); with 'force' 'w' is switched to it all the same",
    }
    assert by_program.read_text() == "a/one"
    assert cos("overseer", "switch", "w", "b/two", "--force").code == 0
    assert by_program.read_text() == "b/two"


def test_notify_says_which_variable_is_missing_and_tries_only_when_told(
    cos: Cos, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = cos("overseer", "notify")
    assert without.code == 1
    assert "telegram: not ready: the variable CUSTODES_NOTIFY_TELEGRAM is not set" in without.out
    monkeypatch.setenv("CUSTODES_NOTIFY_TELEGRAM", "json://127.0.0.1:1/secret-path")
    assert cos("overseer", "notify").out == "telegram: has an address\n"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise, before Python 3.13
def test_a_test_message_is_really_sent(cos: Cos, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with health_provider() as webhook:
        monkeypatch.setenv("CUSTODES_NOTIFY_TELEGRAM", f"json://{webhook.url.removeprefix('http://')}")
        assert cos("overseer", "notify", "--test").out == "telegram: delivered\n"
        assert webhook.methods == ["POST"]
        webhook.status = 500
        failed = cos("overseer", "notify", "--test", "--format", "json")
        assert failed.code == 1
        assert failed.document["channels"]["telegram"] == "not delivered: it did not take the message"


def test_without_its_file_it_says_where_it_looked(cos: Cos, home: Path) -> None:
    (home / "supervisor.yaml").unlink()
    done = cos("overseer", "tick", "--format", "json")
    assert done.code == 1
    assert done.document["error"]["kind"] == "overseer"
    assert str(home / "supervisor.yaml") in done.document["error"]["message"]


def test_a_mistake_in_the_file_is_one_clear_line(cos: Cos, home: Path) -> None:
    (home / "supervisor.yaml").write_text("supervisor:\n  check_intervall: 5\n")
    done = cos("overseer", "status")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "unknown key 'supervisor.check_intervall'; did you mean 'check_interval'?" in done.err


def test_a_disabled_one_does_nothing(cos: Cos, home: Path, project: Path) -> None:
    text = SEED_FILE.read_text().replace("enabled: true", "enabled: false")
    (home / "supervisor.yaml").write_text(text)
    assert "disabled" in cos("overseer", "tick").out
    assert "disabled" in cos("overseer", "run").out
    assert json.loads(cos("overseer", "tick", "--format", "json").out)["skipped"]
    assert not (project / ".coding-os").exists()
