"""The registries of transports and of policies agree with those of the JVM, and with the documentation."""

import re
from pathlib import Path

import pytest
from penstock.api.settings import planned_policies, settings, transports
from penstock.planning import policies, shard_policies
from penstock.transport.registry import FALLBACK, TRANSPORTS

DOCS = Path(__file__).parents[3] / "docs"


def setting(name):
    (found,) = (found for found in settings() if found.option == f"penstock.{name}")
    return found


def words(name):
    """Return the values that a setting allows, in their order."""
    return setting(name).allowed.removeprefix("one of ").split(", where")[0].split(", ")


def page(name, heading=""):
    """Return the text of a page, or of its section with a heading, with single spaces instead of line ends."""
    text = (DOCS / name).read_text()
    if heading:
        level = heading.split()[0]
        (text,) = re.findall(
            rf"^{re.escape(heading)}\n(.*?)(?=^#{{2,{len(level)}}} |\Z)", text, re.DOTALL | re.MULTILINE
        )
    return " ".join(text.split())


def code(names):
    return ", ".join(f"`{name}`" for name in names)


def rows(text):
    """Return the names in the first column of a table whose rows are of transports."""
    return re.findall(r"`([a-z]+)`", " ".join(re.findall(r"\| ((?:`[a-z]+`(?:, )?)+)(?: between sidecars)? \|", text)))


def test_the_jvm_has_the_same_transports():
    assert [(t.name, t.number, t.encrypts, t.admits_strangers, t.only_by_name) for t in transports()] == [
        (t.name, t.number, t.encrypts, bool(t.admits_strangers), bool(t.only_by_name)) for t in TRANSPORTS.values()
    ]
    assert words("transport") == ["off", "auto", *TRANSPORTS]


def test_numbers_of_transports_are_unique_and_fit_into_an_answer():
    numbers = [registered.number for registered in TRANSPORTS.values()]
    assert len(set(numbers)) == len(numbers)
    assert all(0 < number < 1 << 4 for number in numbers)


def test_the_fallback_may_be_used_wherever_another_transport_may_not():
    registered = TRANSPORTS[FALLBACK]
    assert registered.encrypts
    for reason in ("within_host", "admits_strangers", "only_by_name", "needs_device"):
        assert not getattr(registered, reason)


def test_a_transport_that_admits_strangers_is_used_only_by_name():
    assert all(registered.only_by_name for registered in TRANSPORTS.values() if registered.admits_strangers)


def test_the_protocol_describes_each_transport():
    section = page("PROTOCOL.md", "### Transports")
    assert sorted(rows(section)) == sorted(TRANSPORTS)
    assert sorted(re.findall(r"\*\*`([a-z]+)`\.\*\*", section)) == sorted(TRANSPORTS)
    sidecar = page("PROTOCOL.md", "## 12. Transfer sidecar")
    encrypting = code(name for name, registered in TRANSPORTS.items() if registered.encrypts)
    by_name = code(name for name, registered in TRANSPORTS.items() if registered.only_by_name)
    numbers = ", ".join(f"{registered.number} `{name}`" for name, registered in TRANSPORTS.items())
    for sentence in (
        f"tries the transports that both sidecars offer in the order {code(TRANSPORTS)};",
        f"It always offers `{FALLBACK}`. With `encrypted` it offers only {encrypting}. It offers {by_name} only if",
        f"number of the transport over which the answer came: {numbers}.",
    ):
        assert sentence in sidecar


def test_the_guide_describes_each_transport():
    assert sorted(rows(page("guide/compatibility.md", "## Transports between executors"))) == sorted(TRANSPORTS)
    assert sorted(rows(page("guide/security.md", "## Sockets and memory"))) == sorted(TRANSPORTS)


def test_the_jvm_has_the_planners_policies():
    assert list(planned_policies()) == list(shard_policies.POLICIES)


@pytest.mark.parametrize("name", ["policy", "tasks"])
def test_the_meaning_of_a_setting_names_each_policy(name):
    assert [value for value in words(name) if f"`{value}`" not in setting(name).meaning] == []


def test_each_policy_can_be_set_and_is_described():
    values = words("policy")
    assert set(shard_policies.POLICIES) < set(values)
    documented = page("guide/tuning.md", "## Policies")
    # Policies with a seed are for tests.
    assert [value for value in values if "<seed>" not in value and f"`{value}`" not in documented] == []
    assert f"| name of the policy | {code(shard_policies.POLICIES)} |" in page("PROTOCOL.md", "#### `measured`")


def test_simulations_have_the_planners_policies():
    assert set(shard_policies.POLICIES) <= set(policies.POLICIES)
