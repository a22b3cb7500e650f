# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our variables of an inventory, which may be said with `-e`, too: data."""

from __future__ import annotations

import dataclasses
import typing as t

from ..module_utils._healing import balancing

Kind = t.Literal["str", "int", "float", "bool", "list", "dict", "raw"]


@dataclasses.dataclass(frozen=True)
class Variable:
    help: str
    kind: Kind = "str"
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    commas: bool = False  # a list that may be written `a,b`
    secret: bool = False  # its value is in no message


WAIT_FOR = ("running", "ssh", "agent")


def _of_role(role: str, **kinds: Kind) -> dict[str, Variable]:
    """The role's options that a person sets; tests hold them against its argument_specs."""
    help = f"see `ansible-doc -t role novalite.cloud.{role}`"
    return {
        f"{role}_{name}": Variable(help, kind, commas=kind == "list" and name != "shares")
        for name, kind in kinds.items()
    }


INVENTORY: dict[str, Variable] = {
    "novalite_home": Variable("directory on the controller that holds the ledger"),
    "novalite_ledger_url": Variable("SQLAlchemy URL of a ledger in PostgreSQL", secret=True),
    "novalite_compute_group": Variable("the group of the compute hosts"),
    "novalite_identity_file": Variable("private key to offer to guests"),
    "novalite_metadata_url": Variable("where the metadata service is"),
    "novalite_wait_for": Variable("what launches wait for, where wait_for does not say it", choices=WAIT_FOR),
    "novalite_facts_max_age": Variable("seconds for which a launch believes what it has heard of a host", "int"),
    "novalite_removed_days": Variable("days for which disks that repairs removed are kept on their hosts", "int"),
    "novalite_mac_prefix": Variable("how the guests' MAC addresses begin"),
    "novalite_antispoof": Variable(
        "what keeps guests from sending under foreign addresses", choices=("nwfilter", "chains")
    ),
    "novalite_backup_store": Variable("directory of all hosts, or sftp:user@host:path, that backups of servers go to"),
    "novalite_vnc": Variable("whether guests have a display, which the console in a browser shows", "bool"),
    "novalite_balance_mode": Variable(
        "what watch.yml and balance.yml do about the balance of the hosts", choices=balancing.MODES
    ),
    "novalite_fence_agent": Variable("fence agent that switches a compute host off, or none"),
    "novalite_fence_parameters": Variable("what the fence agent is told", "dict", secret=True),
    "novalite_fence_timeout": Variable("seconds that a fence agent may take", "int"),
    "novalite_ha_switch": Variable("seconds of a compute host's dead-man's switch, 0 for none", "int"),
    "novalite_ha_heartbeat": Variable("directory on storage that all compute hosts share, for their heartbeats"),
    "novalite_watch_controller": Variable("name of the controller that watches, if not its machine's"),
    "novalite_watch_patience": Variable("seconds that a compute host may take to answer a look", "int"),
    "novalite_watch_settings": Variable("numbers of the watch, see docs/ha.md", "dict"),
    "novalite_extra_variables": Variable("names of your own variables; * stands for anything", "list", commas=True),
    "novalite_cloud": Variable("what seed.yml records", "dict"),
    "novalite_projects": Variable("projects that users.yml records", "list"),
    "novalite_users": Variable("users that users.yml records", "list", secret=True),
    **_of_role(
        "compute_node",
        aggregates="list",
        antispoof="str",
        count_foreign="str",
        cpu_mode="str",
        cpu_model_extra_flags="list",
        cpu_models="list",
        cpu_dedicated_set="str",
        cpu_ratio="float",
        cpu_shared_set="str",
        disabled_reason="str",
        disk_discard="str",
        disk_ratio="float",
        domain_type="str",
        enabled="bool",
        packages="list",
        pci_alias="list",
        pci_device_spec="list",
        ram_ratio="float",
        reach_users="list",
        reserved_disk_gb="int",
        reserved_huge_pages="list",
        reserved_memory_mb="int",
        reserved_vcpus="int",
        shared_routes="list",
        vnc="bool",
        shares="list",
        state_dir="str",
        tunnel_address="str",
        zone="str",
    ),
    **_of_role(
        "controller",
        api_bind="str",
        backup="str",
        backup_keep="int",
        balance="bool",
        balance_interval="str",
        certificate="str",
        certificate_names="list",
        directory="str",
        home="str",
        inventory="str",
        metadata="bool",
        metadata_bind="str",
        packages="list",
        proxy="bool",
        proxy_bind="str",
        public_url="str",
        python="str",
        reconcile="str",
        reconcile_interval="str",
        run_backups="bool",
        run_backups_interval="str",
        replicate="bool",
        replicate_interval="str",
        source="str",
        user="str",
        watch="bool",
        watch_interval="str",
        wheels="str",
        workers="int",
    ),
    "controller_ledger_url": Variable("see `ansible-doc -t role novalite.cloud.controller`", secret=True),
    "controller_settings": Variable("see `ansible-doc -t role novalite.cloud.controller`", "dict", secret=True),
    **_of_role("interfaces", timeout="float"),
    **_of_role(
        "move", auto_converge="bool", bandwidth="int", download_by="str", shutdown_timeout="float", state_dir="str"
    ),
    **_of_role("power", shutdown_timeout="float"),
    **_of_role("reclaim", metadata="bool", move_address="bool", state_dir="str", wipe="str"),
    **_of_role(
        "spawn",
        controller_dir="str",
        download_by="str",
        inject_backend="str",
        metadata_url="str",
        move_address="bool",
        open_to_guests="list",
        shutdown_timeout="float",
        state_dir="str",
        wait_for="str",
        wait_timeout="int",
    ),
}
