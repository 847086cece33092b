#!/usr/bin/env python3
"""Writes docs/reference/ and tests/surface.txt from the code, wherever a name, a field or its words changed.

    scripts/reference.py          write them
    scripts/reference.py --check  say which are not current, and exit with 1

A test compares them, so that a change of what is public is seen in review.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import griffe

from custodes.cli.app import COMMANDS, make_app
from custodes.policy.roles import ROLE_DEFAULTS

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "reference"
ROOMS = (
    "actors",
    "store",
    "telemetry",
    "adapters",
    "policy",
    "supervision",
    "overseer",
    "mcp",
    "hub",
    "cli",
)
CODE = cast("griffe.Module", griffe.load("custodes", search_paths=[ROOT / "src"]))
NOTE = "<!-- Written by scripts/reference.py from the code. Change it there. -->\n\n"


def of(path: str) -> griffe.Object:
    """The object itself, wherever its name was imported from."""
    found = CODE[path]
    return found.final_target if isinstance(found, griffe.Alias) else found


def words(documented: griffe.Object) -> str:
    return documented.docstring.value if documented.docstring else ""


def is_ours(member: griffe.Object | griffe.Alias) -> bool:
    """Whether it is promised to nobody: by its name, or by Sphinx's word for it in its docstring."""
    return member.name.startswith("_") or ":meta private:" in (
        member.docstring.value if member.docstring else ""
    )


def markdown(docstring: str) -> str:
    """A docstring's words: its fields as a list, its cross references as code."""
    text = re.sub(r"\s*\(seed\b[^)]*\)", "", docstring)  # sources are for who changes the code
    text = re.sub(r":\w+:`~?\.*([^`]+)`", r"`\1`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"^:param (\w+):", r"- **`\1`**:", text, flags=re.MULTILINE)
    text = re.sub(r"^:raises ([\w.~]+):", r"- raises `\1`:", text, flags=re.MULTILINE)
    return re.sub(r"([^\n])\n- (\*\*|raises)", r"\1\n\n- \2", text, count=1)


def cell(text: object) -> str:
    """What may stand in a table."""
    return " ".join(markdown(str(text)).split()).replace("|", "\\|")


def code(text: object) -> str:
    return f"`{text}`".replace("|", "\\|") if str(text) else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fields(struct: griffe.Object) -> Iterator[griffe.Attribute]:
    """A Struct's own, in the order they are written."""
    for member in struct.members.values():
        if isinstance(member, griffe.Attribute) and member.annotation and "property" not in member.labels:
            yield member


def kind(field: griffe.Attribute) -> str:
    """Its type, with the words that may stand there where it is an alias for them."""
    text = str(field.annotation)
    alias = field.module.members.get(text)
    if isinstance(alias, griffe.Alias):
        try:
            alias = alias.final_target
        except griffe.AliasResolutionError:  # not ours
            return text
    if isinstance(alias, griffe.Attribute) and str(alias.value).startswith("Literal["):
        return str(alias.value).removeprefix("Literal[").removesuffix("]").replace("'", "")
    return text


def field_table(struct: griffe.Object) -> str:
    rows = (
        (code(f.name), code(kind(f)), code(f.value) if f.value is not None else "", cell(words(f)))
        for f in fields(struct)
    )
    return table(("field", "type", "default", ""), rows)


def struct(path: str, title: str = "") -> str:
    found = of(path)
    return f"## {title or f'`{found.name}`'}\n\n{markdown(words(found))}\n\n{field_table(found)}\n"


def cli() -> str:
    text = make_app(own=COMMANDS).generate_docs(recursive=True)
    text = re.sub(r"## Table of Contents\n.*?(?=\*\*Commands)", "", text, count=1, flags=re.DOTALL)
    return text.replace("```console", "```text").replace("# cos\n", "# Commands\n", 1)


def settings() -> str:
    roles = table(
        ("role", "mutable", "timeout", "effort"),
        (
            (code(role), "yes" if it.mutable else "no", f"{it.timeout_s:g} s", code(it.effort))
            for role, it in ROLE_DEFAULTS.items()
        ),
    )
    parts = [struct(f"policy.policy.{name}") for name in ("Policy", "Target", "Cooldown", "Telemetry")]
    return (
        "# Settings\n\nThe policy stands in `.coding-os/hub-settings.json` under `model_routing`. "
        "`cos supervision set`, `cos_supervision_config` over MCP and the Hub change it; each is checked as "
        "it is written, and keys that are not ours stay. A second gate stands beside it: "
        "`cognition.enabled`, on where absent.\n\n" + "".join(parts) + f"## Roles\n\n{roles}"
    )


def adapter_yaml() -> str:
    names = ("Descriptor", "Entrypoints", "Model", "Price", "Cli", "Endpoint", "Readiness")
    parts = "".join(struct(f"adapters.descriptor.{name}") for name in names)
    capabilities = ", ".join(code(name.strip("'")) for name in _literal("adapters.descriptor.Capability"))
    return (
        "# adapter.yaml\n\n[Writing an adapter](../adapters.md) teaches it; here is every key. `origin` and "
        "`folder` are set by Custodes. An unknown key is refused with its near miss.\n\n"
        f"Capabilities: {capabilities}.\n\n{parts}"
    )


def _literal(path: str) -> list[str]:
    """The values of a ``Literal``, as they are written."""
    return re.findall(r"'[^']*'", str(of(path).value))  # type: ignore[attr-defined]  # an attribute, by its name


def methods(of_class: griffe.Object) -> Iterator[griffe.Function]:
    for member in of_class.members.values():
        if isinstance(member, griffe.Function) and not is_ours(member) and member.docstring:
            yield member


def signature(function: griffe.Function) -> str:
    """As one would write it, without ``self``."""
    first = function.parameters[0].name if len(function.parameters) else ""
    text = str(function.signature(return_type=True))
    text = re.sub(rf"\({first}(, )?", "(", text, count=1) if first in ("self", "cls") else text
    return f"async {text}" if "async" in function.labels else text


def python() -> str:
    parts = ["# Python\n\n`import custodes` costs nothing: each name is loaded at its first use.\n"]
    for name in names_of(CODE):
        if name == "__version__":
            continue
        found = of(name)
        parts.append(f"## `{name}`\n\n{markdown(words(found))}\n")
        if not isinstance(found, griffe.Class):
            parts.append(f"```text\n{name} = {found.value}\n```\n")  # type: ignore[attr-defined]  # an attribute
            continue
        if any(str(base).endswith("Struct") for base in found.bases):
            parts.append(field_table(found))
        elif isinstance(made := found.members.get("__init__"), griffe.Function):
            parts.append(f"```text\n{signature(made).replace('__init__', name, 1)}\n```\n")
        for method in methods(found):
            shown = f"```text\n{signature(method)}\n```"
            parts.append(f"### `{name}.{method.name}`\n\n{shown}\n\n{markdown(words(method))}\n")
        for attribute in found.members.values():
            if (
                isinstance(attribute, griffe.Attribute)
                and "property" in attribute.labels
                and attribute.docstring
            ):
                text = f"{code(attribute.annotation)}. {markdown(words(attribute))}"
                parts.append(f"### `{name}.{attribute.name}`\n\n{text}\n")
    return "\n".join(parts)


def events() -> str:
    module = of("supervision.events")
    parts = ["# Events\n\nWhat `conversation.events()` and an observer are told, in order.\n"]
    parts.append(struct("supervision.events.Event"))
    for found in module.classes.values():
        if found.name != "Event":
            tag = str(found.keywords.get("tag", "")).strip("'\"")
            told = f"As JSON, `event` is `{tag}`." if tag else ""
            parts.append(f"## `{found.name}`\n\n{told} {markdown(words(found))}\n\n{field_table(found)}")
    return "\n".join(parts)


def errors() -> str:
    parts = [
        (
            "# Errors\n\nWork never raises for what came of it: an `Outcome` has a `failure` or a `refusal`. "
            "What is raised is wrong use, and what keeps the store or the settings from being read.\n"
        )
    ]
    for title, path in (
        ("A failure's categories", "adapters.port.Category"),
        ("A refusal's categories", "supervision.work.RefusalCategory"),
        ("An outcome's status", "supervision.work.Status"),
    ):
        parts.append(f"## {title}\n\n{', '.join(value.replace(chr(39), '`') for value in _literal(path))}\n")
    parts.extend(struct(path) for path in ("adapters.port.Failure", "supervision.work.Refusal"))
    rows = sorted((found.module.path, found.name, words(found).split("\n\n")[0]) for found in exceptions())
    told = ((code(name), code(of_room), cell(first)) for of_room, name, first in rows)
    parts.append("## Exceptions\n\n" + table(("name", "of", ""), told))
    codes = "0 done, 1 failed or refused, 2 not understood, 130 after Ctrl-C"
    parts.append(f"## Exit codes of `cos`\n\n{codes}. With `--format json` an error is a document, too.\n")
    return "\n".join(parts)


def exceptions() -> Iterator[griffe.Class]:
    """Those that one may meet and name."""
    for module in walk(CODE):
        for found in module.classes.values():
            private = any(part.startswith("_") for part in found.path.split("."))
            if not found.is_alias and not private and is_error(found):
                yield found


def walk(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for inner in module.modules.values():
        if not isinstance(inner, griffe.Alias):
            yield from walk(inner)


def is_error(found: griffe.Class) -> bool:
    """By what it derives from, in our own code or Python's."""
    for base in found.bases:
        name = str(base).split("[")[0]
        if re.fullmatch(r"(Base)?Exception(Group)?|\w+Error", name):
            return True
        known = found.module.members.get(name)
        try:
            known = known.final_target if isinstance(known, griffe.Alias) else known
        except griffe.AliasResolutionError:  # not ours
            continue
        if isinstance(known, griffe.Class) and is_error(known):
            return True
    return False


def attributes() -> str:
    rows = []
    for found in of("telemetry.conventions").attributes.values():
        value = str(found.value).strip("'\"")
        if re.fullmatch(r"(gen_ai|custodes|error)\.[\w.]+", value):
            rows.append((code(value), cell(words(found))))
    head = (
        "# Attributes and metrics\n\nEvery name that is emitted, of spans and of metrics; `gen_ai.*` and "
        "`error.type` are OpenTelemetry's, `custodes.*` ours. [Observability](../observability.md) shows "
        "them at work.\n\n"
    )
    return head + table(("name", ""), sorted(rows))


def names_of(module: griffe.Object) -> list[str]:
    exported = module.exports if isinstance(module, griffe.Module) else None
    return sorted(str(getattr(name, "name", name)) for name in exported or ())


def surface() -> str:
    """Each public name with its signature, at its first door: what a release promises."""
    lines: list[str] = []
    at_the_front = set(names_of(CODE))
    for module in (CODE, *(of(room) for room in ROOMS)):
        for name in names_of(module):
            if module is CODE or module.name != "supervision" or name not in at_the_front:
                lines.extend(_promised(module, name))
    return "\n".join(lines) + "\n"


def promised(of_whom: str, function: griffe.Function) -> str:
    text = signature(function)
    return f"{'async ' if text.startswith('async ') else ''}{of_whom}.{text.removeprefix('async ')}"


def _promised(module: griffe.Object, name: str) -> Iterator[str]:
    at = f"{module.path}.{name}"
    # A function may stand alone in a module of its name, and what is imported is the function.
    found = of(module.imports.get(name, at).removeprefix("custodes."))
    if isinstance(found, griffe.Function):
        yield promised(module.path, found)
    elif isinstance(found, griffe.Class):
        bases = ", ".join(str(base) for base in found.bases)
        yield f"{at}({bases})"
        for member in found.members.values():
            if is_ours(member) and member.name != "__init__":
                continue
            if isinstance(member, griffe.Function):
                yield promised(at, member)
            elif isinstance(member, griffe.Attribute) and member.annotation is not None:
                default = (
                    f" = {member.value}"
                    if member.value is not None and "class-attribute" in member.labels
                    else ""
                )
                yield f"{at}.{member.name}: {member.annotation}{default}"
    elif isinstance(found, griffe.Attribute):
        yield f"{at}: {found.annotation}" if found.value is None else f"{at} = {found.value}"
    else:
        raise TypeError(f"{at} is a {found.kind.value}, and nothing here says how to promise one")


PAGES: dict[Path, Callable[[], str]] = {
    PLACE / "cli.md": cli,
    PLACE / "settings.md": settings,
    PLACE / "adapter-yaml.md": adapter_yaml,
    PLACE / "python.md": python,
    PLACE / "events.md": events,
    PLACE / "errors.md": errors,
    PLACE / "attributes.md": attributes,
}


def written() -> dict[Path, str]:
    """What each file has to hold."""
    found = {place: NOTE + re.sub(r"\n{3,}", "\n\n", page()).strip() + "\n" for place, page in PAGES.items()}
    return {**found, ROOT / "tests" / "surface.txt": surface()}


def stale() -> list[str]:
    return [
        str(place.relative_to(ROOT))
        for place, text in written().items()
        if not place.exists() or place.read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            PLACE.mkdir(exist_ok=True)
            for place, text in written().items():
                place.write_text(text, encoding="utf-8")
            return 0
        case ["--check"]:
            for name in (old := stale()):
                sys.stderr.write(f"{name} is not current; scripts/reference.py writes it\n")
            return 1 if old else 0
        case _:
            sys.stderr.write("usage: scripts/reference.py [--check]\n")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
