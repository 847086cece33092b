"""What the attempts on record say of a role's work: for the empirical step of routing (`policy.history`), and
for what one more attempt is reckoned at (`supervision.budgets.reckoning`)."""

from __future__ import annotations

from custodes.policy.history import Record
from custodes.store import Connection

ROWS = 5_000
"""The newest attempts that are looked at: enough for every choice's minimum, and read in milliseconds."""

_ENDED_BY_ITSELF = (
    "status = 'done' OR (status IN ('failed', 'unknown') AND category IN ('timeout', 'provider', 'invalid'))"
)
"""A limited, refused or cancelled attempt, and one that waits for a person, says nothing about how well a
runtime works; nor does one whose host died."""


async def recorded(connection: Connection, rows: int = ROWS) -> tuple[Record, ...]:
    """The newest attempts that ran to an end of their own, newest first."""
    found = await connection.execute_fetchall(
        "SELECT role, adapter, model, status = 'done', ended - started, cost_usd, "  # noqa: S608  # our own words
        "input_tokens + output_tokens FROM attempts "
        f"WHERE ended IS NOT NULL AND adapter IS NOT NULL AND ({_ENDED_BY_ITSELF}) "
        "ORDER BY ended DESC, id LIMIT ?",
        (rows,),
    )
    return tuple(
        Record(
            role=role,
            adapter=adapter,
            model=model,
            succeeded=bool(succeeded),
            seconds=max(0.0, seconds),
            cost_usd=cost_usd,
            tokens=tokens,
        )
        for role, adapter, model, succeeded, seconds, cost_usd, tokens in found
    )
