"""The open file: transactions that nothing cuts, a wait that is bounded, and errors that say why."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest

from custodes.store import (
    Connection,
    Database,
    StoreAltered,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreForked,
    StoreFull,
    StoreLocked,
    StoreTooNew,
    StoreUnreadable,
    StoreUnusable,
    integrity,
)
from custodes.store.errors import translate, unusable
from custodes.store.migrations import version
from support.program import running

pytestmark = pytest.mark.anyio

MIGRATIONS = (("CREATE TABLE notes (text TEXT NOT NULL UNIQUE)",),)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Database]:
    database = await Database.open(path, MIGRATIONS)
    try:
        yield database
    finally:
        await database.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".coding-os" / "custodes.db"


async def note(connection: Connection, text: str = "one") -> None:
    await connection.execute_fetchall("INSERT INTO notes VALUES (?)", (text,))


async def notes(connection: Connection) -> list[str]:
    return [text for (text,) in await connection.execute_fetchall("SELECT text FROM notes ORDER BY rowid")]


async def test_the_file_and_its_companions_are_the_owners_alone(path: Path) -> None:
    async with opened(path) as database:
        await database.write(note)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {"custodes.db": 0o600, "custodes.db-wal": 0o600, "custodes.db-shm": 0o600}


async def test_it_is_durable_and_shared(path: Path) -> None:
    async def pragmas(connection: Connection) -> list[object]:
        return [
            value
            for name in ("journal_mode", "synchronous")
            for (value,) in await connection.execute_fetchall(f"PRAGMA {name}")
        ]

    async with opened(path) as database:
        journal, synchronous = await database.write(pragmas)
    assert journal == "wal"
    assert synchronous == 2, "FULL: a committed row survives a power cut"


async def test_a_fold_that_raises_leaves_nothing(path: Path) -> None:
    async def fold(connection: Connection) -> None:
        await note(connection)
        raise ZeroDivisionError

    async with opened(path) as database:
        with pytest.raises(ZeroDivisionError):
            await database.write(fold)
        assert await database.read(notes) == []
        await database.write(note)


async def test_a_mistake_of_ours_is_no_store_error(path: Path) -> None:
    async with opened(path) as database:
        await database.write(note)
        with pytest.raises(sqlite3.IntegrityError):
            await database.write(note)
        assert await database.read(notes) == ["one"]


async def test_a_cancel_of_the_caller_cuts_no_transaction(path: Path) -> None:
    async with opened(path) as database:
        begun, go = threading.Event(), threading.Event()

        async def fold(connection: Connection) -> None:
            await note(connection)
            begun.set()
            go.wait()
            await note(connection, "two")

        async with anyio.create_task_group() as group:
            group.start_soon(database.write, fold)
            await anyio.to_thread.run_sync(begun.wait)
            group.cancel_scope.cancel()
            go.set()
        assert await database.read(notes) == ["one", "two"]


async def test_another_writer_is_waited_for_in_bounded_time_from_the_ask(path: Path) -> None:
    async with opened(path) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            errors: list[StoreLocked] = []

            async def one() -> None:
                with pytest.raises(StoreLocked, match="another writer holds it") as caught:
                    await database.write(note, wait_s=0.3)
                errors.append(caught.value)

            before = anyio.current_time()
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(one)
            # Each in its turn would have been 6 s.
            assert anyio.current_time() - before < 3
            assert len(errors) == 20
            other.execute("ROLLBACK")
        await database.write(note)


async def test_a_writer_of_this_process_is_waited_for_in_bounded_time_too_and_nothing_is_written_late(
    path: Path,
) -> None:
    """Both ways to the thread: the first finds it asked already, the second its turn taken."""
    async with opened(path) as database:
        begun, go = threading.Event(), threading.Event()

        async def slow(connection: Connection) -> None:
            begun.set()
            go.wait(60)
            await note(connection, f"slow {len(await notes(connection))}")

        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            async with anyio.create_task_group() as group:
                group.start_soon(database.write, slow)
                await anyio.to_thread.run_sync(begun.wait)
                # The second finds one before it that gave up, and the slow one before that.
                for _ in range(2):
                    with pytest.raises(StoreLocked):
                        await database.write(note, wait_s=0.1)
                go.set()
            begun.clear()
            go.clear()
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as group:
                group.start_soon(database.write, slow, 60.0)  # in its turn, while others hold the file
                await anyio.sleep(0.05)
                other.execute("ROLLBACK")
                await anyio.to_thread.run_sync(begun.wait)
                with pytest.raises(StoreLocked):
                    await database.write(note, wait_s=0.1)
                go.set()
        assert await database.read(notes) == ["slow 0", "slow 1"]


async def test_readers_read_while_a_writer_writes(path: Path) -> None:
    async with opened(path) as database:
        await database.write(note)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT INTO notes VALUES ('two')")
            assert await database.read(notes) == ["one"]
            other.execute("COMMIT")
        assert await database.read(notes) == ["one", "two"]


async def test_the_reader_writes_nothing(path: Path) -> None:
    async with opened(path) as database:
        with pytest.raises(StoreUnusable, match="readonly"):
            await database.read(note)


async def test_a_closed_store_says_so_and_closing_is_idempotent(path: Path) -> None:
    async with opened(path) as database:
        await database.aclose()
        with pytest.raises(StoreClosed):
            await database.write(note)
        with pytest.raises(StoreClosed):
            await database.read(notes)


async def test_closing_waits_for_what_runs(path: Path) -> None:
    async with opened(path) as database:
        begun, go = threading.Event(), threading.Event()

        async def fold(connection: Connection) -> None:
            begun.set()
            go.wait()
            await note(connection)

        async with anyio.create_task_group() as group:
            group.start_soon(database.write, fold)
            await anyio.to_thread.run_sync(begun.wait)
            group.start_soon(database.aclose)
            await anyio.wait_all_tasks_blocked()
            go.set()
    async with opened(path) as database:
        assert await database.read(notes) == ["one"]


async def test_a_cancelled_open_leaves_no_thread(path: Path) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await Database.open(path, MIGRATIONS)
    for thread in threading.enumerate():
        if thread.name == "custodes-store-stop":
            await anyio.to_thread.run_sync(thread.join)
    assert not any(thread.name == "custodes-store" for thread in threading.enumerate())


async def test_an_open_that_fails_leaves_no_thread(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        await Database.open(path, (("NO SQL",),))
    assert not any(thread.name == "custodes-store" for thread in threading.enumerate())


async def test_migrations_run_once_and_further_ones_are_added(path: Path) -> None:
    async with opened(path) as database:
        await database.write(note)
    more = (*MIGRATIONS, ("ALTER TABLE notes ADD COLUMN seen INTEGER", "CREATE TABLE others (id INTEGER)"))
    database = await Database.open(path, more)
    assert await database.read(notes) == ["one"]
    await database.aclose()
    with pytest.raises(StoreTooNew, match="schema is version 2 and this program knows up to 1"):
        await Database.open(path, MIGRATIONS)
    assert integrity(path, MIGRATIONS)[0].startswith("its schema is version 2")
    assert integrity(path, more) == ()


async def test_a_migration_that_fails_half_way_changes_nothing(path: Path) -> None:
    async with opened(path):
        pass
    with pytest.raises(sqlite3.OperationalError):
        await Database.open(path, (*MIGRATIONS, ("CREATE TABLE half (id INTEGER)", "NO SQL")))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'half'").fetchall() == []


async def test_many_may_open_a_new_file_at_once(path: Path) -> None:
    databases: list[Database] = []

    async def one() -> None:
        databases.append(await Database.open(path, MIGRATIONS))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
    for number, database in enumerate(databases):
        await database.write(lambda connection, number=number: note(connection, str(number)))  # type: ignore[misc]  # bound now
    assert len(await databases[0].read(notes)) == 6
    for database in databases:
        await database.aclose()


async def test_looking_makes_nothing(path: Path) -> None:
    assert await Database.open_read_only(path, MIGRATIONS) is None
    assert not path.parent.exists()
    async with opened(path) as database:
        await database.write(note)
        looking = await Database.open_read_only(path, MIGRATIONS)
        assert looking is not None
        assert await looking.read(notes) == ["one"]
        with pytest.raises(StoreUnusable, match="to look at"):
            await looking.write(note)
        await looking.aclose()


async def test_looking_at_an_older_file_migrates_nothing(path: Path) -> None:
    async with opened(path):
        pass
    assert await Database.open_read_only(path, (*MIGRATIONS, ("CREATE TABLE more (id INTEGER)",))) is None
    with pytest.raises(StoreTooNew):
        await Database.open_read_only(path, ())


async def test_a_full_disk_is_told_and_nothing_is_half_written(path: Path) -> None:
    async def bounded(connection: Connection) -> None:
        await connection.execute_fetchall("PRAGMA max_page_count = 8")

    async def much(connection: Connection) -> None:
        await note(connection)
        for number in range(100):
            await note(connection, f"{number}" + "x" * 4000)

    async with opened(path) as database:
        await database.write(bounded)  # SQLite's own way to meet a full disk
        with pytest.raises(StoreFull, match="free some space"):
            await database.write(much)
        assert await database.read(notes) == []
        await database.write(note)


class SQLiteError(sqlite3.OperationalError):
    """As SQLite raises it: with the code of what went wrong."""

    def __init__(self, code: int) -> None:
        super().__init__("disk I/O error")
        self.sqlite_errorcode = code


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_IOERR_SHMSIZE, StoreFull, "is full .* free some space on the disk of /p"),
        (sqlite3.SQLITE_IOERR_WRITE, StoreUnusable, "disk I/O error; see that the disk, or a quota on it"),
        (sqlite3.SQLITE_CANTOPEN, StoreUnusable, "are yours to write"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StoreUnusable, "not mounted read-only"),
    ],
)
def test_what_sqlite_says_is_told_with_what_would_work(code: int, kind: type[StoreError], words: str) -> None:
    told = translate(Path("/p/custodes.db"), SQLiteError(code), 1.0)
    assert type(told) is kind
    assert re.search(words, str(told))


def test_a_disk_that_is_full_for_the_system_is_told_as_one(tmp_path: Path) -> None:
    told = unusable(tmp_path / "custodes.db", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert type(told) is StoreFull


def test_a_file_of_another_user_is_told_once_with_what_would_work(tmp_path: Path) -> None:
    path = tmp_path / "custodes.db"
    told = unusable(path, PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path)))
    assert str(told).startswith(
        f"{path}: it cannot be used: Operation not permitted; see that the file and its"
    )
    folder = unusable(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path)))
    assert f"Permission denied: {tmp_path}; see that" in str(folder)


@pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0, reason="a disk of its own needs root"
)
async def test_a_disk_without_room_for_the_shared_memory_is_told_as_full(tmp_path: Path) -> None:
    """By a real, small disk. SQLite itself says no more than "disk I/O error"."""
    mounted = f"mount -t tmpfs -o size=1m none {tmp_path} && exec {sys.executable} -c '{FILLED}' {tmp_path}"
    done = await anyio.run_process(["unshare", "-m", "bash", "-c", mounted], check=False)
    if done.stderr.startswith((b"unshare:", b"mount:")):
        pytest.skip("no disk of its own can be made here")
    assert done.stdout.split() == [b"StoreFull"] * 4 + [b"whole"], done.stderr.decode()


FILLED = """
import os, sys
from pathlib import Path
import anyio
from custodes.store import Database, StoreError

STEPS = (("CREATE TABLE notes (text)",),)
root = Path(sys.argv[1])

async def tried(path, opening):
    try:
        database = await opening(path, STEPS)
    except StoreError as error:
        print(type(error).__name__)
    else:
        print("whole")
        await database.aclose()

async def main():
    old = root / "old.db"
    await (await Database.open(old, STEPS)).aclose()
    with (root / "much").open("wb", buffering=0) as much:
        try:
            while much.write(bytes(4096)):
                pass
        except OSError:
            pass
        await tried(root / "new" / "new.db", Database.open)
        await tried(old, Database.open)
        await tried(old, Database.open_read_only)
        much.truncate(os.fstat(much.fileno()).st_size - 16384)  # some room, and too little for it
        await tried(old, Database.open)
    (root / "much").unlink()
    await tried(old, Database.open)

anyio.run(main)
"""


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DROP TABLE notes", "the table 'notes' is missing"),
        ("ALTER TABLE notes RENAME COLUMN text TO words", "the table 'notes' is not as it was made"),
    ],
)
async def test_a_table_that_a_hand_has_changed_is_told_by_whoever_meets_it_and_by_the_whole_check(
    path: Path, change: str, finding: str
) -> None:
    async with opened(path) as database:
        await database.write(note)
        assert integrity(path, MIGRATIONS) == ()
        with closing(sqlite3.connect(path)) as other:
            other.execute(change)
        with pytest.raises(StoreAltered, match=r"no such (table|column).*cos doctor.*moved away"):
            await database.read(notes)
        if "DROP" in change:
            with pytest.raises(StoreAltered):
                await database.write(note)
    assert integrity(path, MIGRATIONS) == (finding,)
    async with opened(path) as database:
        assert await database.read(version) == 1


async def test_bad_sql_of_ours_is_no_error_of_the_store(path: Path) -> None:
    async with opened(path) as database:
        with pytest.raises(sqlite3.OperationalError, match="syntax error"):
            await database.read(lambda connection: connection.execute_fetchall("NO SQL"))


async def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    with pytest.raises(StoreUnusable, match="taken"):
        await Database.open(tmp_path / "taken" / "custodes.db", MIGRATIONS)


@pytest.mark.parametrize("content", [b"not a database at all, and long enough to be read" * 50, None])
async def test_a_damaged_file_is_set_aside_and_reported_once(path: Path, content: bytes | None) -> None:
    async with opened(path) as database:
        for number in range(200):
            await database.write(lambda connection, number=number: note(connection, f"{number}" * 50))  # type: ignore[misc]  # bound now
    good = path.read_bytes()
    damaged = content or good[: len(good) // 2] + b"\xff" * (len(good) - len(good) // 2)
    path.write_bytes(damaged)
    assert integrity(path, MIGRATIONS) != ()
    with pytest.raises(StoreDamaged, match="set aside as") as caught:
        await Database.open(path, MIGRATIONS)
    aside = caught.value.aside
    assert aside is not None
    assert aside.read_bytes() == damaged
    async with opened(path) as database:
        assert await database.read(notes) == []


ELSEWHERE = """\
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("INSERT INTO notes VALUES ('elsewhere')")
connection.commit()
connection.close()
"""


async def test_opened_twice_in_one_process_it_keeps_its_log_from_others(path: Path) -> None:
    async with opened(path) as database:
        await database.write(note)
        async with opened(path):
            pass
        await anyio.run_process([sys.executable, "-c", ELSEWHERE, str(path)])  # the last one would remove it
        assert path.with_name(f"{path.name}-wal").exists()
        await database.write(lambda connection: note(connection, "two"))
        with closing(sqlite3.connect(path)) as other:
            assert len(other.execute("SELECT text FROM notes").fetchall()) == 3


@pytest.mark.parametrize("again", [False, True])
async def test_a_file_that_was_taken_away_is_told_and_the_one_in_its_place_untouched(
    path: Path, again: bool
) -> None:
    async with opened(path) as database:
        await database.write(note)
        for part in path.parent.glob(f"{path.name}*"):
            part.unlink()
        if again:
            async with opened(path) as other:
                await other.write(lambda connection: note(connection, "in the new one"))
        with pytest.raises(StoreUnusable, match="deleted or replaced"):
            await database.write(lambda connection: note(connection, "lost"))
        with pytest.raises(StoreUnusable, match="deleted or replaced"):
            await database.read(notes)
    async with opened(path) as other:
        assert await other.read(notes) == (["in the new one"] if again else [])


async def test_a_project_that_is_moved_takes_its_file_along(path: Path) -> None:
    async with opened(path) as database:
        moved = path.parent.rename(path.parent.with_name("moved"))
        await database.write(note)
    async with opened(moved / path.name) as database:
        assert await database.read(notes) == ["one"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "dangling link"])
async def test_what_is_no_file_is_neither_waited_for_nor_followed(path: Path, kind: str) -> None:
    path.parent.mkdir()
    another = path.with_name("another.db")
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            with closing(sqlite3.connect(another)) as connection, connection:
                connection.execute("CREATE TABLE theirs (text)")
            another.chmod(0o644)
            path.symlink_to(another)
        case _:
            path.symlink_to(another)
    before = another.stat() if kind == "link" else None
    for opening in (Database.open(path, MIGRATIONS), Database.open_read_only(path, MIGRATIONS)):
        with pytest.raises(StoreUnusable, match="stands there; moved away"):
            await opening
    assert "stands there" in integrity(path, MIGRATIONS)[0]
    if before is None:
        assert not another.exists()
    else:
        assert (another.stat().st_mode, another.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


async def test_a_row_that_nobody_can_read_is_told_and_the_rest_is_served(path: Path) -> None:
    async def numbers(connection: Connection) -> list[int]:
        return [msgspec.json.decode(text, type=int) for text in await notes(connection)]

    async with opened(path) as database:
        await database.write(note)
        for ask in (database.read, database.write):
            with pytest.raises(StoreUnreadable, match=r"a row that cannot be read.*moved away"):
                await ask(numbers)
        assert await database.read(notes) == ["one"]


async def test_a_forked_child_gets_a_typed_error_and_touches_nothing(path: Path) -> None:
    async with opened(path) as database:
        await database.write(note)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            coroutine = database.write(note)
            try:
                coroutine.send(None)
            except StoreForked:
                os.write(write, b"forked")
            except BaseException as error:  # told to the parent, whatever it is
                os.write(write, repr(error).encode())
            os._exit(0)
        os.close(write)
        said = await anyio.to_thread.run_sync(os.read, read, 1000)
        os.close(read)
        await anyio.to_thread.run_sync(os.waitpid, pid, 0)
        assert said == b"forked"
        await database.write(lambda connection: note(connection, "two"))


FORGETFUL = """
import sys
from pathlib import Path
import anyio
from custodes.store import Database

async def main():
    database = await Database.open(Path(sys.argv[1]), (("CREATE TABLE notes (text TEXT)",),))
    async def note(connection):
        await connection.execute_fetchall("INSERT INTO notes VALUES ('one')")
    await database.write(note)
    sys.modules["kept"] = database

anyio.run(main, backend=sys.argv[2])
"""


async def test_a_host_that_forgets_to_close_exits_all_the_same(path: Path, anyio_backend_name: str) -> None:
    with anyio.fail_after(30):
        await anyio.run_process([sys.executable, "-c", FORGETFUL, str(path), anyio_backend_name])
    async with opened(path) as database:
        assert await database.read(notes) == ["one"]


def test_both_hosts_share_a_file_in_one_process(path: Path) -> None:
    def host(backend: str) -> None:
        async def main() -> None:
            async with opened(path) as database:
                for number in range(25):
                    await database.write(lambda connection: note(connection, f"{backend} {number}"))  # noqa: B023  # awaited at once

        anyio.run(main, backend=backend)

    threads = [threading.Thread(target=host, args=(backend,)) for backend in ("asyncio", "trio", "asyncio")]
    with closing(sqlite3.connect(":memory:")):
        threads[1].start()
        threads[0].start()
        threads[0].join()
        threads[1].join()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (50,)


KILLED = """
import sys
from pathlib import Path
import anyio
from custodes.store import Database

async def main():
    database = await Database.open(Path(sys.argv[1]), (("CREATE TABLE notes (text TEXT NOT NULL UNIQUE)",),))
    for number in range(10**9):
        async def note(connection):
            await connection.execute_fetchall("INSERT INTO notes VALUES (?)", (f"{sys.argv[2]} {number}",))
        await database.write(note)
        print(number, flush=True)

anyio.run(main)
"""


@pytest.mark.parametrize(
    "runs", [pytest.param(6, id="few"), pytest.param(200, id="many", marks=pytest.mark.full)]
)
def test_kill_9_loses_no_acknowledged_commit(path: Path, runs: int) -> None:
    expected = 0
    for run in range(runs):
        with running(
            [sys.executable, "-c", KILLED, str(path), str(run)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            acknowledged = [child.stdout.readline() for _ in range(1 + run % 7)]
            child.kill()
            acknowledged += child.stdout.readlines()
        expected += sum(line.endswith("\n") for line in acknowledged)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            ((found,),) = connection.execute("SELECT count(*) FROM notes").fetchall()
        # The last commit may have been made and not been told.
        assert expected <= found <= expected + run + 1
