# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch holds against the ledger what the inventory says of a host, with all that Ansible makes of it."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

pytest.importorskip("ansible")
from ansible._internal._templating import _jinja_bits
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import filter_loader
from ansible.template import Templar
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.novalite.cloud.plugins.plugin_utils import _host_expectations, _texts

INVENTORY = """
compute:
  hosts:
    hv1:
      ansible_host: "192.0.2.{{ 1 + 0 }}"
    hv2:
      compute_node_zone: west
      compute_node_domain_type: kvm
      compute_node_tunnel_address: 198.51.100.2
      compute_node_reserved_memory_mb: "{{ 256 * 2 }}"
      compute_node_state_dir: "{{ base }}/novalite"
    hv3:
      compute_node_cpu_ratio: many
    hv4:
      compute_node_zone: "{{ nobody_knows }}"
  vars:
    base: /srv
    novalite_antispoof: chains
"""


def expectations(directory: pathlib.Path, names: t.Sequence[str]) -> dict[str, t.Any]:
    (directory / "hosts.yml").write_text(INVENTORY)
    loader = DataLoader()
    inventory = InventoryManager(loader, sources=[str(directory / "hosts.yml")])
    variables = VariableManager(loader, inventory)
    task_vars = {"hostvars": HostVars(inventory, variables, loader)}
    return _host_expectations.of_hosts(names, task_vars, Templar(loader), loader)


@pytest.fixture(autouse=True)
def _filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection's filters: outside of ansible-playbook there is no collection to find them in."""
    for function in (_texts.as_bool, _texts.as_list):
        name = f"novalite.cloud.{function.__name__}"
        monkeypatch.setitem(_jinja_bits._BUILTIN_FILTERS, name, filter_loader._wrap_func(name, name, function))


def test_expectations_are_the_role_s_defaults_and_the_inventory_s_variables(tmp_path: pathlib.Path) -> None:
    hosts = expectations(tmp_path, ["hv1", "hv2"])
    assert list(hosts) == ["hv1", "hv2"]
    assert hosts["hv1"] == {
        **{"zone": "nova", "aggregates": [], "cpu_ratio": 4.0, "ram_ratio": 1.0, "disk_ratio": 1.0},
        **{"reserved_vcpus": 0, "reserved_memory_mb": 512, "reserved_disk_gb": 0, "count_foreign": "running"},
        **{"address": "192.0.2.1", "tunnel_address": "192.0.2.1", "antispoof": "chains"},
        **{"state_dir": "/var/lib/novalite", "shared_routes": [], "vnc": True},
        **{"cpu_mode": None, "cpu_models": [], "cpu_model_extra_flags": [], "disk_discard": None},
        **{"cpu_shared_set": "", "cpu_dedicated_set": "", "reserved_huge_pages": []},
    }
    changed = {"zone": "west", "domain_type": "kvm", "state_dir": "/srv/novalite"}
    # a name is no address, and is not looked up
    addresses = {"address": None, "tunnel_address": "198.51.100.2"}
    assert hosts["hv2"] == {**hosts["hv1"], **changed, **addresses}


@pytest.mark.parametrize("name", ["hv3", "hv4"])
def test_a_host_whose_variables_make_no_sense_is_asked(name: str, tmp_path: pathlib.Path) -> None:
    assert expectations(tmp_path, [name]) == {name: None}


@pytest.mark.parametrize(("clock", "ahead"), [(100, 0), (108, 0), (112, 0), (99, 0), (131, 20), (79, -20)])
def test_clocks_that_differ_are_told_apart_from_a_slow_answer(clock: float, ahead: int) -> None:
    assert _host_expectations.clock_ahead(clock, began=100, ended=110) == ahead
