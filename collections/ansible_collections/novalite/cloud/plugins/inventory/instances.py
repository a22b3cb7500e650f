# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: instances
short_description: The launched instances as an inventory
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - Reads the ledger and gives each instance as a host, so that the next playbook can configure what the last one
    launched. Changes nothing.
  - The file's name ends in C(novalite.yml) or C(novalite.yaml).
  - An instance has its name, or its UUID where several are called so, or where something else is, a compute host or a
    host or group of an inventory that was read before.
  - The variables are C(novalite_uuid), C(novalite_name), C(novalite_hostname), C(novalite_domain_name),
    C(novalite_project), C(novalite_zone), C(novalite_host), C(novalite_vm_state), C(novalite_task_state),
    C(novalite_flavor), C(novalite_image), C(novalite_key_name), C(novalite_metadata), C(novalite_security_groups),
    C(novalite_networks), C(novalite_agent), C(novalite_created_at) and C(novalite_launched_at). Nothing secret is among
    them.
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
requirements:
  - SQLAlchemy >= 2.0.36, on the controller
notes:
  - O(home), O(ledger_url), O(ssh_config), O(identity_file) and O(user) may be templates, with C(inventory_dir) and
    C(inventory_file) as variables.
options:
  plugin:
    description: The name of this plug-in.
    required: true
    choices: [novalite.cloud.instances]
  home:
    description:
      - Directory that holds the ledger, C(ledger.sqlite).
      - Defaults to the environment variable E(NOVALITE_HOME), then to C(/var/lib/novalite).
    type: str
  ledger_url:
    description:
      - SQLAlchemy URL of a ledger in PostgreSQL. Used instead of O(home).
      - Defaults to the environment variable E(NOVALITE_LEDGER_URL) unless O(home) is given.
    type: str
  projects:
    description: Names of the projects whose instances are listed.
    type: list
    elements: str
    default: [demo]
  all_projects:
    description: List the instances of all projects, whatever O(projects) says.
    type: bool
    default: false
  statuses:
    description: The states (C(vm_state)) of instances that are listed.
    type: list
    elements: str
    default: [active]
    choices: [active, building, error, paused, rescued, resized, stopped, suspended]
  hostnames:
    description:
      - What a host is called. Everybody chooses the names of his own instances, so that V(uuid) is the default where
        several projects are in one inventory (O(all_projects), or more than one of O(projects)), else V(name).
      - An instance whose name means something else already, a group or another host, is called by its UUID in any case.
    type: str
    choices: [name, uuid]
  group_by:
    description:
      - What to make groups of, C(project_demo), C(zone_nova), C(host_hv1), C(metadata_KEY_VALUE),
        C(security_group_default), C(network_private). An underscore stands for what is no letter, digit or underscore.
    type: list
    elements: str
    default: [project, zone, host, metadata, security_group, network]
    choices: [project, zone, host, metadata, security_group, network]
  floating:
    description: Whether C(ansible_host) is the floating IP of those that have one. It is reached directly.
    type: bool
    default: false
  jump:
    description: Whether fixed addresses are reached through the compute host, not directly.
    type: bool
    default: true
  ssh_config:
    description:
      - The file that M(novalite.cloud.ssh_config) keeps, in which the ways through the compute hosts are written.
      - Defaults to C(ssh_config) in the ledger's directory. Where there is no such file, C(ProxyJump) with the name of
        the compute host is left to the user's own configuration of ssh.
    type: str
  user:
    description: The user to log in as where the image has no property C(os_admin_user).
    type: str
    default: root
  identity_file:
    description: Private key to log in with. Without it, ssh takes what O(ssh_config) says or what it has.
    type: str
  agent:
    description:
      - Which guests are reached through QEMU's guest agent instead of ssh, by the connection plug-in
        C(community.libvirt.libvirt_qemu), of those whose image has the property C(hw_qemu_guest_agent).
      - With V(unaddressed) those without an address, with V(always) all of them.
      - The plug-in runs on the controller and needs libvirt's Python binding there. In the guest, C(guest-exec) and the
        C(guest-file-*) commands of the agent must be allowed.
    type: str
    choices: [never, unaddressed, always]
    default: never
  agent_uri:
    description:
      - The libvirt URI of a compute host for O(agent), with C({host}) where its name belongs.
      - libvirt calls ssh itself, which finds the host, port, user and key by its own configuration.
    type: str
    default: qemu+ssh://root@{host}/system
seealso:
  - module: novalite.cloud.ssh_config
  - module: novalite.cloud.server_info
"""

EXAMPLES = r"""
# instances.novalite.yml: what runs in the project demo
plugin: novalite.cloud.instances

---
# all projects, those with a floating IP over it, web servers in a group of their own
plugin: novalite.cloud.instances
home: "{{ inventory_dir }}/../.novalite"
all_projects: true
hostnames: uuid
floating: true
strict: true
groups:
  web: novalite_metadata.role | default('') == 'web'
keyed_groups:
  - prefix: flavor
    key: novalite_flavor.name
compose:
  ansible_python_interpreter: "'/usr/bin/python3'"
"""

import os
import typing as t

from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.module_utils.basic import missing_required_lib
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonObject
from ..module_utils._ssh import inventory as guests


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "novalite.cloud.instances"
    inventory: InventoryData  # the base class's

    def verify_file(self, path: str) -> bool:
        return super().verify_file(path) and path.endswith(("novalite.yml", "novalite.yaml"))

    def parse(self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        self.source = os.path.abspath(path)
        try:
            listed = self._guests(cache)
        except NovaliteError as error:
            raise AnsibleParserError(str(error)) from None
        way, shared = self._way(), frozenset(listed["shared"])
        connections = [guests.connection(guest, way, shared) for guest in listed["guests"]]
        by = self.get_option("hostnames") or ("uuid" if self._is_of_several_projects() else "name")
        taken = {*listed["hosts"], *self.inventory.hosts, *self.inventory.groups}
        if by == "name":
            taken |= self._groups_to_be(listed["guests"], connections)
        for name, guest, connection in zip(guests.names(listed["guests"], taken, by), listed["guests"], connections):
            self._add(name, guest, connection, strict=self.get_option("strict"))

    def _is_of_several_projects(self) -> bool:
        return bool(self.get_option("all_projects")) or len(self.get_option("projects")) > 1

    def _groups_to_be(self, listed: t.Sequence[guests.Guest], connections: t.Sequence[JsonObject]) -> set[str]:
        """The groups that the guests will be in, and those that are asked for whoever is in them.

        A host that is called as a group is one for Ansible: whoever names an instance `web` would decide which groups
        the hosts of the group `web` are in.
        """
        groups = {self._sanitize_group_name(name) for name in self.get_option("groups") or ()}
        real, self.inventory = self.inventory, InventoryData()
        try:
            for guest, connection in zip(listed, connections):
                self._add(guest["uuid"], guest, connection, strict=False)
            return groups | set(self.inventory.groups)
        finally:
            self.inventory = real

    def _guests(self, cache: bool) -> JsonObject:
        """Guests from the ledger, or from the cache when the same was asked not long ago."""
        projects = (
            None if self.get_option("all_projects") else [str(project) for project in self.get_option("projects")]
        )
        home, states = self._path("home"), sorted(str(status) for status in self.get_option("statuses"))
        query = {"home": home, "projects": projects, "statuses": states}
        key = self.get_cache_key(self.source)
        keeps = self.get_option("cache")
        if keeps and cache:
            kept = self._cache.get(key)
            if isinstance(kept, dict) and kept.get("asked") == query:
                return t.cast(JsonObject, kept["found"])
        try:
            from ..module_utils._ledger.placement.inventory import read_guests
        except ImportError as error:
            raise AnsibleParserError(missing_required_lib(error.name or "SQLAlchemy")) from None
        listed = read_guests(home, self._text("ledger_url"), projects, states)
        if keeps:
            self._cache[key] = {"asked": query, "found": listed}
        return listed

    def _way(self) -> guests.Way:
        ssh_config = self._path("ssh_config")
        if ssh_config is None:
            home = self._path("home") or os.environ.get("NOVALITE_HOME") or "/var/lib/novalite"
            ssh_config = os.path.join(os.path.abspath(home), "ssh_config")
        return guests.Way(
            floating=self.get_option("floating"),
            jump=self.get_option("jump"),
            ssh_config=ssh_config if os.path.exists(ssh_config) else None,
            user=self._text("user") or "root",
            identity_file=self._path("identity_file"),
            agent=self.get_option("agent"),
            agent_uri=str(self.get_option("agent_uri")),
        )

    def _add(self, name: str, guest: guests.Guest, connection: JsonObject, strict: bool) -> None:
        variables = {**guests.variables(guest), **connection}
        self.inventory.add_host(name)
        for key, value in variables.items():
            self.inventory.set_variable(name, key, value)
        for group in guests.groups(guest, self.get_option("group_by")):
            self.inventory.add_child(self.inventory.add_group(group), name)
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), {}, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), {}, name, strict=strict)

    def _text(self, option: str) -> str | None:
        """An option that may be a template."""
        value = self.get_option(option)
        if not value:
            return None
        self.templar.available_variables = {
            "inventory_dir": os.path.dirname(self.source),
            "inventory_file": self.source,
        }
        return str(self.templar.template(value)) or None

    def _path(self, option: str) -> str | None:
        value = self._text(option)
        if value is None:
            return None
        return os.path.join(os.path.dirname(self.source), os.path.expandvars(os.path.expanduser(value)))
