# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The undo of a build goes by what its steps did: whatever they found there stays."""

from __future__ import annotations

import typing as t

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._plan.undo import made_by

PARTS = {
    "domains": "domain",
    "dhcp_networks": "dhcp",
    "firewall_instances": "firewall",
    "filters": "nwfilter",
    "staying_routers": "router",
    "last_routers": "router",
    "last_metadata_networks": "metadata_proxy",
    "last_bridges": "bridge",
}
PLAN = {
    "ledger": "L",
    **{part: [{"name": part}] for part in PARTS},
    "disks": [{"uuid": "a"}, {"uuid": "b"}],
    "volumes_gone": [{"id": "v"}, {"id": "w"}],
}
RESULTS: t.Final = st.sampled_from([{"changed": False}, {"changed": True}, {"changed": False, "failed": True}])


@given(st.dictionaries(st.sampled_from(sorted(set(PARTS.values()))), RESULTS, min_size=1))
def test_only_what_a_step_may_have_changed(results: dict[str, dict[str, bool]]) -> None:
    made = made_by(PLAN, [{"module": module, "result": result} for module, result in results.items()])
    for part, module in PARTS.items():
        assert made[part] == (PLAN[part] if any(results.get(module, {}).values()) else []), part
    assert (made["disks"], made["volumes_gone"], made["ledger"]) == ([], [], "L")


def test_disks_and_volumes_that_were_there_stay() -> None:
    created = [{"uuid": "a", "created": ["disk", "disk.swap"]}, {"uuid": "b", "created": ["disk.swap"]}]
    volumes = [{"id": "v", "action": "create", "error": None}, {"id": "w", "action": "extend", "error": None}]
    steps: list[dict[str, t.Any]] = [
        {"module": "disk", "result": {"changed": True, "disks": created}},
        {"module": "volume_disk", "result": {"changed": True, "failed": True, "volumes": volumes}},
    ]
    made = made_by(PLAN, steps)
    assert (made["disks"], made["volumes_gone"]) == ([{"uuid": "a"}], [{"id": "v"}])
    assert made_by(PLAN, [{"module": "image_cache", "result": {"failed": True}}])["disks"] == []


def test_a_host_that_did_not_answer_has_no_data_of_volumes_removed() -> None:
    assert made_by(PLAN, []) == {**PLAN, "volumes_gone": []}
