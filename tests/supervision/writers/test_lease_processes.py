"""Acceptance F4, F11, F12 and F20 across processes: real hosts, real programs, one file."""

from __future__ import annotations

import json
import signal
import sqlite3
from pathlib import Path

import anyio
import psutil
import pytest

from custodes.supervision.writers.scope_file import ScopeView, read_scopes, release_in_file
from support.writers import EVIDENCE, HOST, eventually, hosts, project_of

LEAVER = f"""\
import pathlib, subprocess, sys, time
name = sys.stdin.read().split()[0]
tool = subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600 & wait"], start_new_session=True)
pathlib.Path(f"{{name}}.on").write_text(f"{{tool.pid}}")
while not pathlib.Path(f"{{name}}.go").exists():
    time.sleep(0.01)
print('{EVIDENCE}')
"""
"""Leaves a tool behind that ignores TERM, in a session of its own."""

NESTING = f"""\
import os, pathlib, subprocess, sys
name = sys.stdin.read().split()[0]
pathlib.Path(f"{{name}}.on").write_text(str(os.getpid()))
host = pathlib.Path("host.py").read_text()
inner = [
    subprocess.Popen(
        [sys.executable, "-c", host, os.getcwd(), "trio", f"writer{{number}}", f"writer{{number}}", *scope],
        stdout=open(f"writer{{number}}.out", "w"),
    )
    for number, scope in enumerate((["src/a"], ["src/a/b"], ["docs"]), start=1)
]
for process in inner:
    process.wait()
print('{EVIDENCE}')
"""
"""Starts two clients whose scopes lie in its own, and meet; and one whose scope does not."""

pytestmark = [
    pytest.mark.parametrize("backend", ["asyncio", "trio"]),
]


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)


def scopes(project: Path) -> tuple[ScopeView, ...]:
    return anyio.run(read_scopes, project)


def held(project: Path) -> list[ScopeView]:
    return [view for view in scopes(project) if view.state == "held"]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("second", ["src", "src/a.py", "link"])
def test_f11_two_hosts_take_turns_on_one_scope(tmp_path: Path, backend: str, second: str) -> None:
    project = project_of(tmp_path)
    (project / "src").mkdir()
    (project / "link").symlink_to("src")
    with hosts(project, backend) as start:
        one = start("writer1", "src")
        eventually("the first runs", lambda: one.runs)
        two = start("writer2", second)
        eventually("the second waits", lambda: two.waits)
        first, waiting = scopes(project)
        assert (first.state, waiting.state) == ("held", "waiting")
        assert not two.runs
        one.go()
        eventually("the second runs", lambda: two.runs)
        (then,) = held(project)
        assert then.number > first.number
        two.go()
        assert (one.outcome()["status"], two.outcome()["status"]) == ("done", "done")
    assert scopes(project) == ()


def test_f11_different_scopes_and_nested_repositories_run_together(tmp_path: Path, backend: str) -> None:
    project = project_of(tmp_path)
    for repository in (".", "vendor/one", "vendor/two"):
        (project / repository / ".git").mkdir(parents=True)
    with hosts(project, backend) as start:
        writers = [start("writer1", "vendor/one"), start("writer2", "vendor/two"), start("writer3", "vendor")]
        eventually("all three run at once", lambda: all(writer.runs for writer in writers))
        assert len(held(project)) == 3
        for writer in writers:
            writer.go()
        assert [writer.outcome()["status"] for writer in writers] == ["done"] * 3


def test_f12_a_killed_holders_scope_is_taken_over_once_all_of_its_run_is_gone(
    tmp_path: Path, backend: str
) -> None:
    project = project_of(tmp_path, leaver=LEAVER)
    with hosts(project, backend) as start:
        one = start("leaver1", "src")
        eventually("the first runs", lambda: one.runs)
        (lease,) = held(project)
        two = start("writer2", "src")
        eventually("the second waits", lambda: two.waits)
        one.signal(signal.SIGKILL)
        eventually("the second runs", lambda: two.runs)
        assert not alive(one.pid)
        (then,) = held(project)
        assert then.number > lease.number
        assert then.run_id != lease.run_id
        two.go()
        assert two.outcome()["status"] == "done"


def test_f12_a_waiting_host_that_is_killed_is_not_waited_for(tmp_path: Path, backend: str) -> None:
    project = project_of(tmp_path)
    with hosts(project, backend) as start:
        one = start("writer1", "src")
        eventually("the first runs", lambda: one.runs)
        two = start("writer2", "src")
        eventually("the second waits", lambda: two.waits)
        three = start("writer3", "src")
        eventually("the third waits", lambda: three.waits)
        two.signal(signal.SIGKILL)
        two.process.wait()
        eventually("its place is free while the first still holds", lambda: len(scopes(project)) == 2)
        assert not three.runs
        one.go()
        three.go()
        assert (one.outcome()["status"], three.outcome()["status"]) == ("done", "done")


def test_f12_a_stopped_holder_is_not_taken_over_and_goes_on(tmp_path: Path, backend: str) -> None:
    project = project_of(tmp_path)
    with hosts(project, backend) as start:
        one = start("writer1", "src")
        eventually("the first runs", lambda: one.runs)
        one.signal(signal.SIGSTOP)
        (lease,) = held(project)
        two = start("writer2", "src")
        eventually("the second waits", lambda: two.waits)
        # Long past its heartbeat, as the file has it.
        age_heartbeats(project, 3600)
        eventually("it is silent", lambda: (held(project)[0].silent_s or 0) > 3000)
        again = start("writer3", "src")
        eventually("a third waits, too", lambda: again.waits)
        assert [view.number for view in held(project)] == [lease.number]
        assert not two.runs
        assert not again.runs
        one.go()
        two.go()
        again.go()
        one.signal(signal.SIGCONT)
        assert [host.outcome()["status"] for host in (one, two, again)] == ["done"] * 3


def test_f12_late_rows_and_evidence_of_a_holder_that_was_fenced_off_are_refused(
    tmp_path: Path, backend: str
) -> None:
    project = project_of(tmp_path)
    with hosts(project, backend) as start:
        one = start("writer1", "src")
        eventually("the first runs", lambda: one.runs)
        one.signal(signal.SIGSTOP)
        two = start("writer2", "src")
        eventually("the second waits", lambda: two.waits)
        (lease,) = held(project)
        (released,) = anyio.run(release_in_file, project, lease.run_id, "cli")
        assert "alive and may still write" in released.overridden
        eventually("the second runs", lambda: two.runs)
        one.go()
        one.signal(signal.SIGCONT)
        late = one.outcome()
        assert (late["status"], late["evidence"]) == ("unknown", None)
        assert "released or taken over" in late["failure"]["reason"]
        assert len(held(project)) == 1
        two.go()
        assert two.outcome()["status"] == "done"
    rows = rows_of(project)
    assert (rows["writer1"], rows["writer2"]) == ("unknown", "done")
    (line,) = (project / ".coding-os" / "extensions-audit.log").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["action"], entry["target"]) == ("scopes.release", lease.run_id)
    assert "alive and may still write" in entry["detail"][0]


def test_f4_a_scope_is_released_after_everything_the_work_left_behind_is_gone(
    tmp_path: Path, backend: str
) -> None:
    project = project_of(tmp_path, leaver=LEAVER)
    with hosts(project, backend) as start:
        one = start("leaver1", "src")
        eventually("the first runs", lambda: one.runs)
        two = start("writer2", "src")
        eventually("the second waits", lambda: two.waits)
        two.go()
        one.go()
        eventually("the second runs", lambda: two.runs)
        assert not alive(one.pid)
        assert two.outcome()["status"] == "done"


def test_f20_work_that_a_holder_started_borrows_inside_its_scope_and_siblings_take_turns(
    tmp_path: Path, backend: str
) -> None:
    project = project_of(tmp_path, nesting=NESTING)
    (project / "host.py").write_text(HOST)
    with hosts(project, backend) as start:
        outer = start("nesting1", "src")
        inner = [project / f"writer{number}" for number in (1, 2, 3)]
        eventually("one of the siblings runs", lambda: any(on(file) for file in inner[:2]))
        eventually("the one outside is refused", lambda: inner[2].with_suffix(".out").read_text() != "")
        eventually("the other sibling waits", lambda: (outer.project / "nesting1.waits").exists())
        assert not (on(inner[0]) and on(inner[1]))
        stranger = start("writer4", "src/a")
        eventually("a stranger waits", lambda: stranger.waits)
        for file in inner:
            file.with_suffix(".go").touch()
        eventually("both siblings ran", lambda: on(inner[0]) and on(inner[1]))
        assert outer.outcome()["status"] == "done"
        stranger.go()
        assert stranger.outcome()["status"] == "done"
    *siblings, outside = (json.loads(file.with_suffix(".out").read_text()) for file in inner)
    assert [sibling["status"] for sibling in siblings] == ["done", "done"]
    assert (outside["status"], outside["refusal"]["category"]) == ("refused", "invalid")
    assert "reaches outside" in outside["refusal"]["reason"]


def on(file: Path) -> bool:
    return file.with_suffix(".on").exists()


def age_heartbeats(project: Path, seconds: float) -> None:
    """As if the holders had not been heard of for so long."""
    database = sqlite3.connect(project / ".coding-os" / "custodes.db", timeout=10)
    with database:
        for lease_id, beat in database.execute("SELECT id, beat FROM scope_leases WHERE held").fetchall():
            moment = json.loads(beat)
            moment["uptime"] -= seconds
            database.execute("UPDATE scope_leases SET beat = ? WHERE id = ?", (json.dumps(moment), lease_id))
    database.close()


def rows_of(project: Path) -> dict[str, str]:
    database = sqlite3.connect(project / ".coding-os" / "custodes.db")
    rows = dict(database.execute("SELECT name, status FROM attempts").fetchall())
    database.close()
    return rows
