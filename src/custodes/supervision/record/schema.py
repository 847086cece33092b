"""The supervision tables of the project's database, as ordered migrations.

A released step is never edited: add another. Times of the breaker are JSON (``clock.Deadline``); times for
people are wall seconds since the epoch.
"""

from __future__ import annotations

from pathlib import Path

from custodes.store import Migration

DATABASE = Path(".coding-os", "custodes.db")
"""The file, in its project."""

MIGRATIONS: tuple[Migration, ...] = (
    (
        """
        CREATE TABLE pools (
            name TEXT PRIMARY KEY,
            generation INTEGER NOT NULL,
            failure_count INTEGER NOT NULL,
            deadline TEXT,
            lease TEXT,
            mark TEXT,
            reason TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE unavailable (
            adapter TEXT PRIMARY KEY,
            fingerprint TEXT,
            category TEXT NOT NULL,
            reason TEXT NOT NULL,
            since REAL NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE attempts (
            id TEXT PRIMARY KEY,
            run_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            conversation TEXT NOT NULL,
            parent_run TEXT,
            role TEXT NOT NULL,
            name TEXT NOT NULL,
            mutable INTEGER NOT NULL,
            adapter TEXT,
            model TEXT,
            effort TEXT,
            fingerprint TEXT,
            pool TEXT,
            generation INTEGER,
            health_state TEXT,
            probe INTEGER NOT NULL,
            confirmed INTEGER NOT NULL,
            status TEXT NOT NULL,
            category TEXT,
            retry_after_s INTEGER,
            outcome TEXT,
            reason TEXT NOT NULL,
            input_tokens INTEGER,
            output_tokens INTEGER,
            cached_input_tokens INTEGER,
            cost_usd REAL,
            native_thread_id TEXT,
            served_model TEXT,
            owner TEXT NOT NULL,
            started REAL NOT NULL,
            ended REAL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX attempts_by_run ON attempts (run_id, number)",
        "CREATE INDEX attempts_by_conversation ON attempts (conversation, started)",
        "CREATE INDEX attempts_open ON attempts (status) WHERE status = 'running'",
        "CREATE INDEX attempts_by_age ON attempts (ended)",
    ),
    (
        """
        CREATE TABLE scope_leases (
            id TEXT PRIMARY KEY,
            run_id TEXT NOT NULL,
            parent_run TEXT,
            number INTEGER NOT NULL UNIQUE,
            held INTEGER NOT NULL,
            scope TEXT NOT NULL,
            owner TEXT NOT NULL,
            since REAL NOT NULL,
            beat TEXT NOT NULL,
            "left" TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE TABLE fencing (last INTEGER NOT NULL) STRICT",
        "INSERT INTO fencing VALUES (0)",
    ),
    (
        "ALTER TABLE attempts ADD COLUMN fan_out TEXT",
        "ALTER TABLE attempts ADD COLUMN trace TEXT",
    ),
    (
        """
        CREATE TABLE requests (
            id TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            run_id TEXT NOT NULL,
            owner TEXT NOT NULL,
            client TEXT NOT NULL,
            proof TEXT NOT NULL,
            body TEXT NOT NULL,
            status TEXT NOT NULL,
            reply TEXT,
            asked REAL NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX requests_open ON requests (owner) WHERE status <> 'answered'",
    ),
    (
        "CREATE TABLE overseer_watches (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE overseer_profiles (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE overseer_intents (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE overseer_holder (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL) STRICT",
        """
        CREATE TABLE overseer_incidents (
            id TEXT PRIMARY KEY,
            cause TEXT NOT NULL,
            status TEXT NOT NULL,
            opened REAL NOT NULL,
            body TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE UNIQUE INDEX overseer_one_active ON overseer_incidents (cause) WHERE status = 'active'",
        "CREATE INDEX overseer_incidents_by_age ON overseer_incidents (opened)",
        """
        CREATE TABLE overseer_notices (
            channel TEXT NOT NULL,
            key TEXT NOT NULL,
            since REAL NOT NULL,
            delivered INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (channel, key)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX overseer_notices_waiting ON overseer_notices (since) WHERE delivered = 0",
    ),
    (
        """
        CREATE TABLE plans (
            id TEXT PRIMARY KEY,
            conversation TEXT NOT NULL,
            name TEXT NOT NULL,
            place TEXT,
            digest TEXT NOT NULL,
            plan TEXT NOT NULL,
            ledger TEXT NOT NULL,
            backtracks TEXT NOT NULL,
            status TEXT NOT NULL,
            owner TEXT,
            started REAL NOT NULL,
            changed REAL NOT NULL,
            ended REAL
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE plan_steps (
            plan TEXT NOT NULL,
            step TEXT NOT NULL,
            run_id TEXT NOT NULL,
            mutable INTEGER NOT NULL,
            supervised INTEGER NOT NULL,
            status TEXT NOT NULL,
            outcome TEXT,
            resolved INTEGER NOT NULL,
            started REAL NOT NULL,
            ended REAL,
            PRIMARY KEY (plan, step)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX plans_by_age ON plans (started)",
        "CREATE INDEX plan_steps_by_run ON plan_steps (run_id)",
    ),
    (
        """
        CREATE TABLE asks (
            id TEXT PRIMARY KEY,
            run_id TEXT NOT NULL,
            conversation TEXT NOT NULL,
            role TEXT NOT NULL,
            name TEXT NOT NULL,
            depth INTEGER NOT NULL,
            tool TEXT NOT NULL,
            detail TEXT NOT NULL,
            asked REAL NOT NULL,
            deadline REAL NOT NULL,
            owner TEXT NOT NULL,
            answer TEXT,
            "by" TEXT NOT NULL,
            answered REAL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX asks_open ON asks (asked) WHERE answer IS NULL",
    ),
    ("CREATE INDEX attempts_by_start ON attempts (started, run_id)",),
    (
        """
        CREATE TABLE fan_outs (
            id TEXT PRIMARY KEY,
            conversation TEXT NOT NULL,
            name TEXT NOT NULL,
            ledger TEXT NOT NULL,
            owner TEXT NOT NULL,
            started REAL NOT NULL,
            changed REAL NOT NULL,
            ended REAL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX fan_outs_by_conversation ON fan_outs (conversation, started)",
    ),
    ("ALTER TABLE attempts ADD COLUMN fallback_reason TEXT",),
)
