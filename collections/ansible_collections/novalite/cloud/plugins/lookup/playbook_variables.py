# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: playbook_variables
short_description: Checks what a playbook of novalite was told, before anything is done
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own step. Their first play takes its C(hosts) from it.
  - An extra variable that the playbook does not know ends the run, with the one that was meant. What is known becomes
    what it is to be, C(-e takeover=false) a boolean for example, in Ansible's own table of extra variables.
  - The playbook reads its options from the extra variable C(novalite_options). They are those of the command line and
    of playbooks that import it; variables of the inventory that have such a name are other people's.
  - A playbook that changes anything is not begun while the ledger is behind its hosts, or gone.
  - With C(--limit), the hosts that match are those that may be chosen; the controller, where the decisions are made,
    is always in reach. A run that no compute host is left for fails.
options:
  _terms:
    description: The playbook's name, without C(.yml).
    required: true
"""

EXAMPLES = r"""
- name: Check the variables
  hosts: "{{ lookup('novalite.cloud.playbook_variables', 'launch') }}"
  gather_facts: false
  tasks: []
"""

RETURN = r"""
_raw:
  description: The controller, V(localhost).
  type: list
  elements: str
"""

import contextlib
import os
import typing as t

from ansible import constants as C
from ansible import context
from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.plugins.lookup import LookupBase

from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._ledger_module import check_changeable
from ..plugin_utils import _home
from ..plugin_utils import _playbook_variables as rules
from ..plugin_utils._playbooks import PLAYBOOKS
from ..plugin_utils._startup import Actions, quicken
from ..plugin_utils._texts import as_list

CONTROLLER = "localhost"
UNTAGGED = {"all", "untagged"}  # tags that stand for the tasks of our playbooks, which carry none
COLLECTION = "novalite.cloud."
EXPLAIN = f"{COLLECTION}explain"  # a callback, which tells what the variable of the same name asks for


class LookupModule(LookupBase):
    """Runs in ansible-playbook's own process, for it is part of a play's `hosts`.

    That is why it can do what a task cannot. A task runs in a fork, whose changes are lost; `--limit hv1` leaves no
    play on the controller to run a task in; and what is said with `-e` wins over whatever a task could set. Ansible
    has no interface for any of it that works without a line in the user's ansible.cfg. Two of its objects are reached
    by way of `hostvars`, and of them what is public: VariableManager.extra_vars, InventoryManager.subset().
    tests/unit/playbooks hold that on the oldest and the newest ansible-core.
    """

    options: t.ClassVar[JsonObject | None] = None  # of the playbook that is at work

    def run(self, terms: list[str], variables: JsonObject | None = None, **_options: object) -> list[str]:
        (name,) = terms
        quicken()  # the first of ours that a playbook runs
        variables = variables or {}
        if any(context.CLIARGS.get(mode) for mode in ("syntax", "listhosts", "listtasks", "listtags")):
            return [CONTROLLER]  # nothing is run
        hostvars = variables["hostvars"]  # there is one since a play has run (playbooks/parts/check.yml)
        try:
            self._check(name, variables, hostvars._variable_manager.extra_vars, hostvars._inventory)
        except NovaliteError as error:
            raise AnsibleError(str(error)) from error
        Actions.expect(PLAYBOOKS[name].steps)
        return [CONTROLLER]

    def _check(self, name: str, variables: JsonObject, extra: JsonObject, inventory: InventoryManager) -> None:
        if name not in PLAYBOOKS:
            raise NovaliteError(f"{name}.yml: plugins/plugin_utils/_playbooks.py does not say what it can be told")
        entries, foreign = _entries(variables["playbook_dir"])
        if extra.get(rules.OPTIONS) is LookupModule.options:
            extra.pop(rules.OPTIONS, None)  # of the playbook before this one, and not said with -e
        if name not in entries and not foreign:  # one of ours imports it, and has been checked
            self._hand_over(name, variables, extra)
            return
        if name in entries:
            _refuse_parts(name)
        controller = variables["hostvars"][CONTROLLER]
        own = _own(extra) or _own(controller)
        extra.update(rules.meant(name, extra, entries, foreign, own))
        chosen = self._hand_over(name, variables, extra)
        ignored = rules.ignored(name, controller, chosen, own)
        rules.complete(name, chosen, extra, ignored)
        if ignored:
            self._display.warning(
                f"{name}.yml takes its options from -e, and not from the inventory, which has {', '.join(ignored)}. "
                "Name what is meant for others in novalite_extra_variables"
            )
        if extra.get("explain") and EXPLAIN not in C.CALLBACKS_ENABLED:
            raise NovaliteError(
                f"explain: the callback {EXPLAIN} is not enabled: add it to callbacks_enabled in ansible.cfg, or to "
                "ANSIBLE_CALLBACKS_ENABLED"
            )
        rules.misspelt(controller, own)
        if PLAYBOOKS[name].changes:
            self._check_ledger(variables)
        # `hosts:` of plays is resolved without any host's variables, and would not find the inventory's
        if "novalite_compute_group" in controller:
            extra.setdefault("novalite_compute_group", controller["novalite_compute_group"])
        for host in _limit(name, extra, inventory):
            host_variables = variables["hostvars"][host]  # its groups' variables, too
            rules.misspelt(host_variables, [*own, *_own(host_variables)], host)

    def _hand_over(self, name: str, variables: JsonObject, extra: JsonObject) -> JsonObject:
        """Put the options of playbook `name` where it reads them, and return them.

        `variables` are the play's, with what playbooks say that import it, and without those of a host or group.
        """
        LookupModule.options = rules.options(name, variables, extra)
        extra[rules.OPTIONS] = LookupModule.options
        return LookupModule.options

    def _check_ledger(self, variables: JsonObject) -> None:
        """Raise NovaliteError before any host is asked, where nothing may be changed."""
        where = _home.ledger({}, variables, self._templar)
        with contextlib.suppress(ImportError):  # a task says what is missing
            check_changeable(where["home"], where["ledger_url"])


def _own(variables: JsonMapping) -> list[str]:
    """The names that the operator uses for other things, as these variables say."""
    try:
        return [str(name) for name in as_list(variables.get("novalite_extra_variables"))]
    except ValueError as error:
        raise NovaliteError(f"novalite_extra_variables: {error}") from None


def _entries(parts: str) -> tuple[set[str], bool]:
    """Our playbooks that the command line names, and whether it names others. Ours lie beside the directory `parts`."""
    entries, foreign = set(), False
    for argument in context.CLIARGS.get("args") or ():
        stem, extension = os.path.splitext(os.path.basename(argument))
        if argument.startswith(COLLECTION) and argument[len(COLLECTION) :] in PLAYBOOKS:
            entries.add(argument[len(COLLECTION) :])
        elif stem in PLAYBOOKS and extension and _is_beside(argument, parts):
            entries.add(stem)
        else:
            foreign = True
    return entries, foreign


def _refuse_parts(name: str) -> None:
    """Raises NovaliteError when tasks of playbook `name` would be left out: the run would end well, with nothing done.

    The tags may be the user's ansible.cfg's, and meant for other playbooks, in which what they import of ours has tags.
    """
    tags, skipped = set(context.CLIARGS.get("tags") or UNTAGGED), set(context.CLIARGS.get("skip_tags") or ())
    if skipped & UNTAGGED:
        raise NovaliteError(
            f"{name}.yml would do nothing: no --skip-tags, nor [tags] skip in ansible.cfg, may name "
            f"{' or '.join(sorted(skipped & UNTAGGED))}"
        )
    if not tags & UNTAGGED:
        raise NovaliteError(f"{name}.yml has no tag {' or '.join(sorted(tags))}, and would do nothing: add --tags all")
    if start := context.CLIARGS.get("start_at_task"):
        raise NovaliteError(f"{name}.yml is run whole: leave out --start-at-task '{start}'")


def _is_beside(path: str, directory: str) -> bool:
    return os.path.realpath(os.path.join(os.path.dirname(path), "parts")) == os.path.realpath(directory)


def _limit(name: str, extra: JsonObject, inventory: InventoryManager) -> list[str]:
    """Keep the controller in reach of `--limit`, and remember the hosts that are; return those that the playbook works
    on."""
    own_group = PLAYBOOKS[name].group
    group = own_group or extra.get("novalite_compute_group", "compute")
    kind = own_group or "compute host"
    limited = bool(context.CLIARGS.get("subset"))
    if limited and "novalite_limit" not in extra:
        extra["novalite_limit"] = [host.name for host in inventory.get_hosts("all")]
        inventory.subset(",".join({CONTROLLER: None, **dict.fromkeys(extra["novalite_limit"])}))
    if not PLAYBOOKS[name].hosts:
        return []
    hosts = [host.name for host in inventory.get_hosts(group)]
    if not hosts:
        of_group = inventory.get_hosts(group, ignore_limits=True)
        if of_group:
            raise NovaliteError(
                f"{name}.yml: --limit {context.CLIARGS['subset']} leaves no {kind}: "
                f"the group '{group}' has {', '.join(host.name for host in of_group)}"
            )
        if not inventory.get_hosts("all", ignore_limits=True):
            raise NovaliteError(f"{name}.yml: no inventory with hosts was named: give -i, or export ANSIBLE_INVENTORY")
        raise NovaliteError(
            f"{name}.yml: the inventory has no {kind}: put hosts into its group '{group}'"
            + ("" if own_group else ", or name another one in novalite_compute_group")
        )
    return hosts
