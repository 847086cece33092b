"""The project's one SQLite file: opened, migrated, one writer, one reader, off the host's loop.

It knows no table: each room brings its own migrations, and its queries as coroutines over a connection.
"""

from .connection import Connection, Row
from .database import Database
from .errors import (
    StoreAltered,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreForked,
    StoreFull,
    StoreLocked,
    StoreOnNetwork,
    StoreReplaced,
    StoreTooNew,
    StoreUnreadable,
    StoreUnusable,
)
from .integrity import integrity
from .migrations import Migration
from .place import irregular
from .portal import run_soon
from .table import Table, json_text

__all__ = [
    "Connection",
    "Database",
    "Migration",
    "Row",
    "StoreAltered",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreForked",
    "StoreFull",
    "StoreLocked",
    "StoreOnNetwork",
    "StoreReplaced",
    "StoreTooNew",
    "StoreUnreadable",
    "StoreUnusable",
    "Table",
    "integrity",
    "irregular",
    "json_text",
    "run_soon",
]
