# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading the inventory as playbooks do, for who compares it with what the command is told. Ansible is imported."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import typing as t


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The inventory that playbooks are run with: how many hosts its group `compute` has, and the `home` that it says,
    None where it says none, or a ledger's URL."""

    hosts: int
    home: str | None = None


def read(sources: t.Sequence[str]) -> Inventory:
    """Return the inventory in `sources`; without, in those of ansible.cfg. What cannot be read is empty."""
    from ansible import constants
    from ansible.errors import AnsibleError
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.template import Templar
    from ansible.vars.manager import VariableManager

    loader = DataLoader()
    with contextlib.redirect_stderr(io.StringIO()):  # its warnings are what the findings say
        manager = InventoryManager(loader=loader, sources=list(sources or constants.DEFAULT_HOST_LIST))
        group = manager.groups.get("compute")
        variables = VariableManager(loader=loader, inventory=manager).get_vars(host=manager.get_host("localhost"))
        home = None
        if not variables.get("novalite_ledger_url"):
            with contextlib.suppress(AnsibleError):
                home = Templar(loader=loader, variables=variables).template(variables.get("novalite_home"))
    return Inventory(len(group.get_hosts()) if group else 0, os.path.abspath(str(home)) if home else None)
