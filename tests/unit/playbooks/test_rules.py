# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that are known, what was meant by others, and what `--limit` refuses."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.plugin_utils import _reach
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbook_variables import (
    complete,
    ignored,
    meant,
    misspelt,
    options,
)
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS


@pytest.mark.parametrize(
    ("playbook", "extra", "says"),
    [
        ("launch", {"coutn": "3"}, "there is no variable 'coutn': did you mean 'count'?"),
        ("launch", {"novalite_hme": "/srv"}, "did you mean 'novalite_home'?"),
        ("launch", {"zzz": 1}, "Name a variable of your own in novalite_extra_variables"),
        ("launch", {"count": True}, "count=True is not a whole number"),
        ("launch", {"spawn_move_address": "maybe"}, "spawn_move_address='maybe' is not true or false"),
        ("launch", {"server": "web", "name": "db"}, "server and name mean the same: leave out name"),
        ("launch", {"servers": "web"}, "servers='web' is not a list: say -e @file.yml with servers: [...] in it"),
        ("launch", {"hints": "group"}, "hints='group' is not a mapping"),
        ("launch", {"scheduler": "luck"}, "scheduler='luck' is none of filter_scheduler, simple"),
        ("terminate", {"takeover": "true"}, "there is no variable 'takeover'"),
        ("reboot", {"reboot_type": "warm"}, "reboot_type='warm' is none of soft, hard"),
        ("launch", {"server": 5}, "server is 5, a number: a text is meant, so quote it"),
        ("launch", {"flavor": False}, "flavor is false, a boolean: a text is meant"),
        ("adopt", {"groups": ["web"]}, "groups: no security group can be applied to an adopted server"),
        ("reachability", {"port": "ssh"}, "port='ssh' is not a whole number"),
    ],
)
def test_refused(playbook: str, extra: dict[str, t.Any], says: str) -> None:
    with pytest.raises(NovaliteError) as caught:
        meant(playbook, extra, {playbook}, False, [])
    assert str(caught.value).startswith(f"{playbook}.yml: ") and says in str(caught.value)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(NovaliteError, match=r"'flavour'.*'coutn'.*takeover='perhaps'"):
        meant("launch", {"flavour": 1, "coutn": 2, "takeover": "perhaps"}, {"launch"}, False, [])


def test_a_secret_is_in_no_message() -> None:
    with pytest.raises(NovaliteError) as caught:
        meant("rebuild", {"admin_password": ["hunter2"], "files": "hunter3"}, {"rebuild"}, False, [])
    assert "admin_password is a list: give a text" in str(caught.value) and "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    ("playbook", "extra", "values"),
    [
        ("launch", {"name": "web", "count": "3"}, {"server": "web", "count": 3}),
        ("launch", {"all_or_nothing": "false", "takeover": "no"}, {"all_or_nothing": False, "takeover": False}),
        ("launch", {"networks": "a, b", "security_groups": "[]"}, {"networks": ["a", "b"], "security_groups": []}),
        ("launch", {"hints": '{"group": "g"}'}, {"hints": {"group": "g"}}),
        ("launch", {"count": "{{ many }}"}, {"count": "{{ many }}"}),  # for Ansible to resolve
        ("launch", {"ansible_user": "me", "spawn_wait_timeout": "5"}, {"spawn_wait_timeout": 5}),
        ("launch", {"novalite_cpu_ratio": "5"}, {}),
        ("stop", {"shutdown_timeout": "0"}, {"shutdown_timeout": 0}),
        (
            "volumes",
            {"name": "data", "size": "10", "state": "absent"},
            {"volume": "data", "volume_size": 10, "volume_state": "absent"},
        ),
        ("floating_ips", {"server": "", "address": "192.0.2.9"}, {"server": "", "floating_ip": "192.0.2.9"}),
        ("stack", {"stack": {"name": "s"}, "prune": "False"}, {"stack": {"name": "s"}, "prune": False}),
    ],
)
def test_meant(playbook: str, extra: dict[str, t.Any], values: dict[str, t.Any]) -> None:
    assert meant(playbook, extra, {playbook}, False, ["novalite_cpu_*"]) == values


def test_several_playbooks_in_one_command_know_each_others_words() -> None:
    assert meant("seed", {"max_age": "9"}, {"seed", "evict"}, False, []) == {}
    assert meant("evict", {"max_age": "9"}, {"seed", "evict"}, False, []) == {"max_age": 9}


def test_beside_others_playbooks_only_what_is_near_is_a_mistake() -> None:
    assert meant("launch", {"colour": "red", "hosts": "web"}, set(), True, []) == {}
    with pytest.raises(NovaliteError, match="did you mean 'count'"):
        meant("launch", {"coutn": 1}, set(), True, [])


def test_what_a_playbook_is_about_is_said_once() -> None:
    complete("reachability", {"source": "a", "destination": "b"}, {"source"}, [])
    complete("seed", {}, set(), [])
    with pytest.raises(NovaliteError, match=r"reachability.yml: say -e destination=\.\.\.: [^.]*$"):
        complete("reachability", {"source": "a"}, {"source"}, ["source"])
    with pytest.raises(
        NovaliteError,
        match=r"say -e server=\.\.\. \(or servers, uuids\): .*\. The inventory's servers is not an option of it",
    ):
        complete("stop", {"count": 2}, {"count"}, ["servers", "project"])


NEEDED = [(name, words, word) for name, book in PLAYBOOKS.items() for words in book.needs for word in words]


@pytest.mark.parametrize(("playbook", "words", "word"), NEEDED)
@pytest.mark.parametrize("value", [None, ""])
def test_nothing_is_not_what_a_playbook_is_about(
    playbook: str, words: tuple[str, ...], word: str, value: str | None
) -> None:
    others = {others[0]: "x" for others in PLAYBOOKS[playbook].needs if others != words}
    with pytest.raises(NovaliteError) as caught:
        complete(playbook, {**others, word: value}, {word}, [])
    assert str(caught.value).startswith(f"{playbook}.yml: say -e {words[0]}=...")
    assert str(caught.value).endswith(f". {word} (from -e): nothing is in it")
    complete(playbook, {**others, word: "x"}, {word}, [])
    complete(playbook, {**others, word: []}, {word}, [])  # a list that a person's playbook made: there was nothing


@pytest.mark.parametrize(
    ("playbook", "said", "says"),
    [
        ("terminate", ("uuids", "server"), "uuids (from -e) takes the place of server (from -e): leave out either"),
        (
            "terminate",
            ("servers", "server", "count"),
            "servers (from -e) takes the place of server (from -e), count (fr",
        ),
        ("launch", ("servers", "flavor"), "servers (from -e) takes the place of flavor (from -e)"),
        ("evacuate", ("from_host", "server"), "from_host (from -e) takes the place of server (from -e)"),
        ("interface_detach", ("uuids", "interfaces"), "uuids (from -e) takes the place of interfaces (from -e)"),
        ("volumes", ("volumes", "host"), "volumes (from -e) takes the place of host (from -e)"),
    ],
)
def test_one_word_is_said_or_the_other(playbook: str, said: tuple[str, ...], says: str) -> None:
    with pytest.raises(NovaliteError) as caught:
        complete(playbook, dict.fromkeys(said, 1), set(said), [])
    assert says in str(caught.value)
    with pytest.raises(NovaliteError, match=rf"{said[0]} \(from the playbook that imports {playbook}.yml\) takes"):
        complete(playbook, dict.fromkeys(said, 1), said[1:], [])


def test_options_come_from_the_playbook_and_the_command_line() -> None:
    play = {"server": "web", "count": 2, "novalite_playbook": "launch", "playbook_dir": "/x"}
    assert options("launch", play, {"count": 3, "vault_token": 1}) == {"server": "web", "count": 3}


def test_what_the_inventory_says_beside_the_options_is_named() -> None:
    inventory = {"servers": [], "project": "x", "network": 1, "uuids": 0, "novalite_home": "/srv"}
    assert ignored("terminate", inventory, {"uuids"}, []) == ["servers", "project"]
    assert ignored("terminate", inventory, {"uuids"}, ["serv*"]) == ["project"]


def test_misspelt_in_the_inventory() -> None:
    misspelt({"novalite_home", "ansible_user", "move_fast", "novalite_own_things", "spawning"}, [])
    misspelt({"novalite_hme"}, ["novalite_h*"])
    with pytest.raises(NovaliteError, match=r"compute_node_zones is not .*: did you mean compute_node_zone"):
        misspelt({"compute_node_zones"}, [])


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ("server", {"to_delete": [{"host": "hv2"}, {"host": None}]}),
        ("server_plan", {"hosts": {"hv1": {"build": {}}, "hv2": {"remove": {}}}}),
        ("server_action", {"hosts": {"hv2": {}}}),
        ("server_migration", {"hosts": {"hv1": {"arriving": []}, "hv2": {"leaving": []}}}),
        ("server_interface", {"hosts": {"hv2": {}}, "peers": {}}),
        ("volume_action", {"hosts": {"hv2": {}}}),
        (
            "volume",
            {
                "begun": ["a"],
                "volumes": [
                    {"id": "a", "host": "hv2", "attachments": []},
                    {"id": "b", "host": "hv3", "attachments": []},
                ],
            },
        ),
        ("volume", {"begun": ["a"], "volumes": [{"id": "a", "host": None, "attachments": [{"host": "hv2"}]}]}),
    ],
)
def test_a_host_that_the_limit_leaves_out_and_that_is_needed(operation: str, result: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError, match="--limit leaves out hv2, which has to take part: add it to --limit"):
        _reach.warnings(operation, result, ["hv1"])
    assert _reach.warnings(operation, result, ["hv1", "hv2"]) == []


def test_a_host_that_the_limit_leaves_out_and_that_is_only_told() -> None:
    plan: dict[str, t.Any] = {"hosts": {"hv1": {"build": {}}, "hv2": {"peers": {}}, "hv3": {"keep": {}}}}
    assert _reach.warnings("server_plan", plan, ["hv1"]) == [
        "--limit leaves out hv2: run reconcile.yml there for what else changed"
    ]
    assert _reach.warnings("firewall_plan", plan, ["hv1"]) == []
