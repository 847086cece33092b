"""adapter.yaml: what loads, and which file and field an error names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from custodes.adapters import Descriptor, DescriptorError
from custodes.adapters.descriptor import describe, is_loopback
from custodes.adapters.manifest import read_mapping


def load(folder: Path, text: str) -> tuple[Descriptor, tuple[str, ...]]:
    file = folder / "adapter.yaml"
    file.write_text(text)
    return describe(read_mapping(file), file=file, default_id="mine")


SEED = """
runtime_entrypoints:
  dispatch: "sdk_dispatcher.py"
  transcript: "chat_provider.py"
  capabilities:
    - dispatch
    - model_selection
    - effort_selection
    - structured_output
models: []
efforts: []
"""


def test_the_first_seeds_descriptor_loads_as_it_is_printed(tmp_path: Path) -> None:
    found, warnings = load(tmp_path, SEED)
    assert (found.id, warnings) == ("mine", ())
    assert found.can("structured_output")
    assert found.runtime_entrypoints.transcript == "chat_provider.py"


def test_pools_are_the_bucket_or_the_adapter(tmp_path: Path) -> None:
    found, _ = load(tmp_path, "id: no\nmodels:\n  - {id: a, bucket: x}\n  - {id: b}\n")
    assert (found.pool("a"), found.pool("b"), found.pool(None)) == ("no:x", "no", "no")


def test_keys_of_the_original_project_are_warned_about(tmp_path: Path) -> None:
    _, warnings = load(tmp_path, "name: X\nhooks: {a: b}\nmodels: [{id: a, description: d}]\nx-mine: 1\n")
    assert [w.split("'")[1] for w in warnings] == ["name", "hooks", "models[0].description", "x-mine"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("modles: []", "'modles'; did you mean 'models'?"),
        ("models: [{id: a, buckt: x}]", "'models[0].buckt'; did you mean 'bucket'?"),
        ("readiness: {extra: a.b}", "readiness.extra: 'a.b' must be an extra's plain name"),
        ("origin: builtin", "unknown key 'origin'"),
        ("models: [{bucket: x}]", "models[0]: object missing required field id"),
        ("models: [{id: 4.5}]", "models[0].id: expected str, got float"),
        ("models: [{id: a}, {id: a}]", "models[1].id: 'a' is declared twice"),
        ("models: [{id: a, default: true}, {id: b, default: true}]", "models: more than one"),
        ("models: [{id: a, bucket: 'x y'}]", "models[0].bucket"),
        ("runtime_entrypoints: {capabilities: [dispach]}", "'dispach'; did you mean 'dispatch'?"),
        ("runtime_entrypoints: {capabilities: [dispatch]}", "runtime_entrypoints.dispatch: is missing"),
        ("runtime_entrypoints: {dispatch: ../evil.py}", "runtime_entrypoints.dispatch: '../evil.py'"),
        (
            "efforts: [low]\ndefault_effort: lo",
            "default_effort: 'lo' is not one of efforts; did you mean 'low'?",
        ),
        ("dispatch_timeout_s: .nan", "dispatch_timeout_s"),
        ("dispatch_timeout_s: 0", "dispatch_timeout_s"),
        ("id: Up:per", "id: 'Up:per'"),
        ("version: 2", "version: 2"),
        ("endpoint: {base_url: 'http://u:canary@h/v1'}", "endpoint.base_url: must not hold a user name"),
        ("endpoint: {key_env: sk-123}", "endpoint.key_env: must be the name"),
        ("a: 1\na: 2", "duplicate key"),
        ("a: [", "line 1"),
        ("- a", "must be a mapping"),
        ("1: a", "the key 1"),
        ("a: &a [x]\nb: &b [" + "*a, " * 300 + "]\nc: [" + "*b, " * 300 + "]", "unfolds"),
        ("[" * 3_000, "adapter.yaml"),
    ],
)
def test_an_error_is_one_line_that_names_file_and_field(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "adapter.yaml"))
    assert says in message
    assert "\n" not in message
    assert "canary" not in message


def test_odd_files_are_refused_without_hanging(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b"#" * (1 << 20) + b"##")
    (tmp_path / "latin").write_bytes(b"label: \xe9")
    for name, says in [
        ("pipe", "plain"),
        ("big", "larger"),
        ("latin", "UTF-8"),
        ("none", "No such"),
        (".", "plain"),
    ]:
        with pytest.raises(DescriptorError, match=says):
            read_mapping(tmp_path / name)


def test_loopback_is_told_by_spelling_alone() -> None:
    assert all(map(is_loopback, ["http://localhost:1", "http://127.0.0.2/v1", "http://[::1]:8/v1"]))
    assert not any(map(is_loopback, ["http://localhost.evil.example", "https://10.0.0.1", "", "http://["]))
