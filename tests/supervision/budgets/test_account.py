"""The keeper of a ledger by itself; what it does in a fan-out is shown in test_fan_out_budget."""

from __future__ import annotations

import pytest

from custodes.adapters.port import Usage
from custodes.supervision.budgets.account import Account
from custodes.supervision.work import Budget, Work

pytestmark = pytest.mark.anyio

WORK = Work(role="reviewer", prompt="look", estimate_tokens=60)


async def test_what_another_ledger_accounts_for_costs_nothing_until_it_says_so() -> None:
    account = Account.of(Budget(tokens=100))
    account.open()
    assert account.reserve_stated("asked", WORK) is None
    assert account.reserve_stated("too much", WORK) is not None
    account.release("asked")  # it was cancelled before anybody was asked for it
    assert (account.spending.tokens.spent, account.spending.tokens.left) == (0, 100)


async def test_what_another_ledger_accounts_for_is_settled_at_what_it_used() -> None:
    account = Account.of(Budget(tokens=100))
    account.open()
    account.reserve_stated("told", WORK)
    account.reserve_stated("not told", Work(role="reviewer", prompt="look", estimate_tokens=30))
    account.settle("told", Usage(input_tokens=5, output_tokens=6))
    account.settle("not told", None)
    spent = account.spending.tokens
    assert (spent.spent, spent.estimated, spent.left) == (41, 30, 59)
