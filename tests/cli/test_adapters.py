from __future__ import annotations

from support.cos import Cos, Tiered


def test_list_shows_each_adapter_with_its_origin_and_why_it_is_not_ready(cos: Cos, tiered: Tiered) -> None:
    answer = cos("adapters", "list", "--format", "json")
    assert answer.code == 0
    by_id = {one["id"]: one for one in answer.document["adapters"]}
    fixture = by_id.pop(tiered.adapter)
    assert (fixture["origin"], fixture["agent"], fixture["ready"]) == ("project", True, False)
    assert "cos adapters trust fixture" in fixture["reason"]
    assert by_id
    assert all(one["origin"] == "builtin" and not one["agent"] for one in by_id.values())


def test_trust_lasts_until_a_file_of_the_adapter_changes(cos: Cos, tiered: Tiered) -> None:
    def ready() -> bool:
        adapters = cos("supervision", "show", "--format", "json").document["adapters"]
        return bool(adapters[0]["ready"])

    assert not ready()
    assert cos("adapters", "trust", "fixture").code == 0
    assert ready()
    file = tiered.project / ".coding-os" / "adapters" / "fixture" / "adapter.yaml"
    file.write_text(file.read_text().replace("A fixture", "Another"))
    assert not ready()


def test_trust_is_taken_back_by_undo(cos: Cos, tiered: Tiered) -> None:
    cos("adapters", "trust", "fixture")
    answer = cos("adapters", "trust", "fixture", "--undo", "--format", "json")
    assert answer.document == {"adapter": "fixture", "trusted": False, "was_trusted": True}
    assert cos("adapters", "trust", "fixture", "--undo", "--format", "json").document["was_trusted"] is False


def test_an_adapter_that_is_not_there_is_one_line(cos: Cos, tiered: Tiered) -> None:
    answer = cos("adapters", "trust", "fixtur")
    assert answer.code == 1
    assert "there is no adapter 'fixtur'" in answer.err
    assert answer.err.count("\n") == 1


def test_a_broken_descriptor_is_named_with_file_and_field(cos: Cos, tiered: Tiered) -> None:
    file = tiered.project / ".coding-os" / "adapters" / "fixture" / "adapter.yaml"
    file.write_text(file.read_text().replace("efforts:", "eforts:"))
    answer = cos("adapters", "list")
    assert answer.code == 1
    assert f"{file}: unknown key 'eforts'; did you mean 'efforts'?" in answer.out
    document = cos("adapters", "list", "--format", "json").document
    assert "eforts" in document["errors"]["fixture"]
