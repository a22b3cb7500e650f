# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expectations of the inventory about compute hosts, to be held against what the ledger has of them.

A worker for each host, which only finds that its host need not be asked, costs a launch 0.1 s and 100 hosts some
seconds. So the options of the task that looks at a host are worked out for all of them in one process.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import pathlib
import typing as t

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._model import host_numa
from ..modules import compute_host

ROLE = pathlib.Path(__file__).parents[2] / "roles/compute_node"
STEP = 5  # seconds: below half of it, clocks agree
TASK = "novalite.cloud.compute_host"  # of the role's tasks/facts.yml


def policy_of(params: JsonMapping) -> JsonObject:
    """Return the options among `params`, those of compute_host, that are the operator's decisions."""
    return {option: params[option] for option in compute_host.POLICY_ARGUMENTS if params[option] is not None}


def controllers_facts(params: JsonMapping, address: str) -> JsonObject:
    """Return the facts of a host that are the inventory's. `address`: its `ansible_host`, or its name."""
    # for SimpleCIDRAffinityFilter's like; a name is left alone, for to look it up may take seconds
    known_address = address_or_none(address)
    tunnel_address = params["tunnel_address"] or known_address
    own = {option: params[option] for option in ("shared_routes", *compute_host.GUEST_ARGUMENTS, *host_numa.OPTIONS)}
    return {"address": known_address, "tunnel_address": tunnel_address, **own}


def clock_ahead(clock: float, began: float, ended: float) -> int:
    """Return by how many seconds, in fives so that it stays the same, a host's `clock` is ahead of this machine's; it
    was read between these two moments. 0 where they agree."""
    ahead = clock - ended if clock > ended else min(clock - began, 0)
    return round(ahead / STEP) * STEP


def of_hosts(
    names: c.Iterable[str], task_vars: JsonMapping, templar: t.Any, loader: t.Any
) -> dict[str, JsonObject | None]:
    """Return for each host what the ledger must have of it for its word to be taken: facts, policy and `state_dir`.

    `templar` and `loader` are those of an action plug-in. A host whose variables do not make sense is None: the task
    that asks it says what is wrong.
    """
    defaults = loader.load_from_file(str(ROLE / "defaults/main.yml"), trusted_as_template=True)
    (task,) = loader.load_from_file(str(ROLE / "tasks/facts.yml"), trusted_as_template=True)
    validator = ArgumentSpecValidator(compute_host.ARGUMENT_SPEC)
    hosts: dict[str, JsonObject | None] = {}
    for name in names:
        variables = {**defaults, **task_vars["hostvars"].raw_get(name)}
        of_host = templar.copy_with_new_env(available_variables=variables)
        try:
            validated = validator.validate(of_host.template(task[TASK]))
            address = of_host.template(variables.get("ansible_host")) or name
        except AnsibleError:
            hosts[name] = None
            continue
        hosts[name] = None if validated.error_messages else _expected(validated.validated_parameters, str(address))
    return hosts


def _expected(params: JsonMapping, address: str) -> JsonObject:
    chosen = {} if params["domain_type"] == "auto" else {"domain_type": params["domain_type"]}
    return {**policy_of(params), **controllers_facts(params, address), **chosen, "state_dir": params["state_dir"]}


def address_or_none(name: str) -> str | None:
    """Return the address that `name` is, in its canonical form."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None
