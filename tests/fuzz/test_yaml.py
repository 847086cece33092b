"""YAML of strangers: it is read as plain data or refused with file and line, in bounded time and memory."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from custodes.adapters import DescriptorError
from custodes.adapters.descriptor import describe
from custodes.adapters.hermes.profile_text import MalformedError, parse, respelled, with_setting
from custodes.adapters.manifest import parse_mapping
from custodes.adapters.port import ProfileSetting
from custodes.adapters.yaml_text import LARGEST, MAX_DEPTH, MAX_NODES, YamlError, load
from support.fuzz import CANARY, in_words, other_kinds_of_nothing, spoiled, tried

FILE = Path("adapter.yaml")
ADAPTERS = Path(__file__).parents[2] / "src" / "custodes" / "adapters"
SEEDS = [
    *(file.read_bytes() for file in sorted(ADAPTERS.glob("*/adapter.yaml"))),
    (Path(__file__).parents[1] / "fixtures" / "overseer" / "supervisor.yaml").read_bytes(),
]
PIECES = [
    *(b"!!int ", b"!!float ", b"!!bool ", b"!!null ", b"!!timestamp ", b"!!binary ", b"!!set ", b"!!omap "),
    *(
        b"!!python/object:os.system ",
        b"!x ",
        b"!<> ",
        b"%YAML 1.1\n---\n",
        b"%YAML 1.3\n---\n",
        b"%TAG ! x\n",
    ),
    *(b"&a ", b"*a ", b"<<: ", b"<<: *a\n", b"<<: [*a, *a]\n", b"? ", b": ", b"- ", b"---\n", b"...\n"),
    *(b'"\\ud800"', b'"\\UFFFFFFFF"', b'"\\0"', b"\0", b"\xff", b"\xef\xbb\xbf", b"\t", b"\r", b"\x1b[31m"),
    *(b"[", b"]", b"{", b"}", b"'", b'"', b"|", b">", b"#", b"@", b"`", b"~", b"="),
    *(b".nan", b".inf", b"1e999", b"0x" + b"f" * 4_000, b"9" * 5_000, b"2001-99-99", b"0o", b"_", b"no"),
    *(b"[" * 300, b"{" * 300, b"- " * 300, b"x: " + CANARY.encode() + b"\n"),
]

UNFOLDING = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)

FAULTS = [
    "a: !!int ''",
    "a: !!float ''",
    "a: !!bool maybe",
    "a: !!int foo",
    "a: 9999-12-31T23:59:59.9999999Z",
    "a: 0x" + "f" * 4_000,
    "0x" + "f" * 4_000,
    "? 0x" + "f" * 4_000 + "\n: a",
    'a: "\\UFFFFFFFF"',
    "%YAML 1.3\n---\na: b",
    "%YAML " + "9" * 5_000 + ".1\n---\na: b",
    "a: &x 1\nb: &x 2",
    "a: &a [*a]",
    "&a {*a : 1}",
    UNFOLDING,
    "a: " + "[" * 500,
]


def data_of(value: Any) -> bool:
    """Whether it is plain data through and through."""
    if isinstance(value, dict):
        return all(data_of(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return all(map(data_of, value))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() == value
    if isinstance(value, int):
        return abs(value) <= LARGEST
    return value is None or isinstance(value, float)


def read(data: bytes) -> dict[str, Any] | None:
    with warnings.catch_warnings(action="error"):
        try:
            found = parse_mapping(FILE, data)
        except DescriptorError as error:
            assert in_words(error).startswith("adapter.yaml")  # noqa: PT017 - not every input is refused
            return None
    assert data_of(found)
    return found


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:30].encode("unicode_escape").decode())
def test_what_once_broke_the_reader_is_refused_or_read(text: str) -> None:
    read(text.encode())


@given(spoiled(SEEDS, PIECES))
@tried(60)
def test_a_spoiled_file_is_plain_data_or_one_line_of_words(data: bytes) -> None:
    read(data)


@given(st.lists(st.sampled_from(PIECES) | st.sampled_from([b"a", b"b", b" ", b"\n", b","]), max_size=12))
@tried(150)
@example(pieces=[b"a: ", b"!!int ", b"[", b"]"])
def test_whatever_is_put_together_is_plain_data_or_one_line_of_words(pieces: list[bytes]) -> None:
    read(b"".join(pieces))


def test_a_document_is_bounded_with_all_that_its_aliases_and_merges_repeat() -> None:
    hundred = f"a: &a [{'x, ' * 99}]\nb: "
    assert len(load(hundred + f"[{'*a, ' * (MAX_NODES // 100 - 2)}]")["b"]) == MAX_NODES // 100 - 2
    with pytest.raises(YamlError, match="unfolds to more"):
        load(hundred + f"[{'*a, ' * (MAX_NODES // 100)}]")
    with pytest.raises(YamlError, match="unfolds to more"):
        load(UNFOLDING)
    within = load("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert within
    with pytest.raises(YamlError, match="nested more than"):
        load("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "text",
    [
        f"key: {CANARY}\nkey: {CANARY}",
        f"key: !!int {CANARY}",
        f'key: "{CANARY}\\ud800"',
        f'"{CANARY}"',
        f"key: [{CANARY}",
        f"key: *{CANARY[:2]}\nother: {CANARY}",
    ],
)
def test_an_error_quotes_no_value_of_the_file(text: str) -> None:
    assert read(text.encode()) is None
    with pytest.raises(MalformedError) as caught:
        parse(text)
    in_words(caught.value)


PROFILE = f"""\
# mine
model:
  default: kimi-k2.7-code   # for now
  provider: opencode-go
  base_url: http://127.0.0.1:1/v1
  api_key: {CANARY}
agent: {{max_turns: 7}}
answer: no
""".encode()
WANTED = ProfileSetting(model="grok-4.5", provider="custom", base_url="http://127.0.0.1:2/v1")


@pytest.mark.parametrize("file", sorted(ADAPTERS.glob("*/adapter.yaml")), ids=lambda file: file.parent.name)
def test_nothing_of_the_wrong_kind_is_refused_and_never_taken_for_not_stated(file: Path) -> None:
    for path, document in other_kinds_of_nothing(parse_mapping(file, file.read_bytes())):
        with pytest.raises(DescriptorError):
            pytest.fail(f"{path}: {describe(document, file=file, default_id='x')}")


@given(spoiled([PROFILE], [*PIECES, b"? [a]\n  : b\n  ", b"model: ", b"provider:\n", b"default: {a: b}\n"]))
@tried(100)
@example(b"model:\n  ? [a]\n  : b\n  default: x\n")
@example(b"model: &m\n  default: x\n  self: *m\n")
def test_a_profile_is_respelled_to_say_just_what_is_wanted_or_not_at_all(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        document = parse(text)
    except MalformedError as error:
        in_words(error)
        return
    result = with_setting(document, WANTED)
    spelled = respelled(text, WANTED, result)
    assert spelled is None or parse(spelled) == result
