"""``cos roles``: the 11 roles, and what each starts from where nobody decided otherwise."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from custodes.cli.options import FormatOption
from custodes.cli.output import DONE, paint, usage_error, write, write_json
from custodes.policy.role_info import role_info


def roles(
    role: Annotated[str, Parameter(help="One role; all of them where not given.")] = "",
    /,
    *,
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show the roles, and what each starts from.

    Of each: what it is for, its tier, effort, timeout and rights. These are the
    last resort: a request, the policy and a preset come before them.
    """
    try:
        found = role_info(role)
    except ValueError as error:
        raise usage_error(str(error)) from None
    if format == "json":
        write_json({"roles": found})
        return DONE
    for info in found:
        rights = "may change files" if info.mutable else "read-only"
        write(f"{paint(f'{info.role:<17}', 'bold')} {info.purpose}")
        write(f"{'':<17} {info.tier} tier, effort {info.effort}, {info.timeout_s:g} s, {rights}")
        write(f"{'':<17} {paint(info.reason, 'dim')}")
    return DONE
