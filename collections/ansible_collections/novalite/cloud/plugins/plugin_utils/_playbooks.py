# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that each playbook takes with `-e`: data, which plugin_utils/_playbook_variables.py checks.

A word that Ansible reserves (`ansible.vars.reserved`), or that means anything anywhere (`state`, `from`, `size`), is
no variable of ours; some older ones are kept as aliases.
"""

from __future__ import annotations

import dataclasses

from ._playbook_words import (
    ACTION,
    ATTACHMENTS,
    EITHER,
    EITHER_INTERFACE,
    EITHER_LAUNCH,
    IMPORTED,
    INTERFACES,
    LAUNCH,
    MOVE,
    NO_GROUPS,
    ONE_VOLUME,
    PROJECT,
    REPORT,
    SCHEDULING,
    SERVERS,
    SHUTDOWN,
    STATES,
    TAKEOVER,
    VOLUME,
    WAIT,
    WHOM,
    Playbook,
    of_servers,
    options_named,
)
from ._playbooks_of_upkeep import UPKEEP
from ._settings import Variable

PLAYBOOKS: dict[str, Playbook] = {
    "adopt": Playbook(
        {
            "host": Variable("compute host that the domain is on"),
            "domain": Variable("name or UUID of the domain"),
            "server": Variable("name that it gets; its own, if left out"),
            "network": Variable("network that its interface is on; none: on none of novalite's"),
            "address": Variable("its IPv4 address there"),
            **PROJECT,
            **options_named("flavor"),
        },
        (("host",), ("domain",)),
        refused=dict.fromkeys(("security_groups", "security_group", "groups"), f"{NO_GROUPS} (docs/adopt.md)"),
    ),
    "console_attach": Playbook(SERVERS, WHOM, hosts=False, changes=False, instead=EITHER),
    "topology": Playbook(
        {"picture": Variable("file to draw into: .svg, .png ...", aliases=("file",)), **PROJECT},
        hosts=False,
        changes=False,
    ),
    "call_diagram": Playbook(
        {"server": Variable("name of the server"), "picture": Variable("file to draw into: .svg"), **PROJECT},
        (("server",),),
        hosts=False,
        changes=False,
    ),
    "change_password": of_servers(options_named("admin_password")),
    "cdrom": Playbook(
        {
            **SERVERS,
            "insert": Variable("name or id of the ISO image that is put in"),
            "eject": Variable("take out what is in the drive", "bool"),
            "drive": Variable("number of the CD drive, from 0", "int"),
            "force": Variable("take a CD from a guest that holds on to it", "bool"),
        },
        (*WHOM, ("insert", "eject")),
        instead={**EITHER, "insert": ("eject",)},
    ),
    "compute_node_remove": Playbook(
        {
            "host": Variable("compute host that leaves"),
            "host_gone": Variable("it does not exist any more: do not clean it", "bool"),
        },
        (("host",),),
        hosts=False,
    ),
    "compute_node_rename": Playbook(
        {
            "host": Variable("name that the ledger has for the compute host"),
            "new_name": Variable("its new name, which the inventory has already"),
        },
        (("host",), ("new_name",)),
        changes=False,  # but what a restored ledger has to know before its hosts can be asked
    ),
    "compute_nodes": Playbook(
        {"replaced": Variable("compute hosts whose hardware was replaced or installed anew", "list", commas=True)}
    ),
    "confirm_resize": of_servers(),
    "console": dataclasses.replace(
        of_servers(
            {"lines": Variable("lines at most", "int"), "max_bytes": Variable("bytes at most of each console", "int")}
        ),
        changes=False,
    ),
    "controller": Playbook({}, group="controller"),
    "evict": Playbook(
        {
            "max_age": Variable("seconds that an unused image is kept", "int"),
            "max_cache_gb": Variable("GiB of unused images that are kept", "int"),
            "min_free": Variable("percent of the file system for which the bin of removed disks is emptied", "int"),
        }
    ),
    "firewall": Playbook({}),
    "floating_ips": Playbook(
        {
            "floating_ip": Variable("the address", aliases=("address",)),
            "floating_ip_state": Variable("absent: give it back", choices=STATES, aliases=("state",)),
            "pool": Variable("pool that a new one comes from"),
            "server": Variable("name of the server that it leads to; empty: nowhere"),
            "fixed_ip": Variable("which of the server's addresses"),
            "floating_ips": Variable("list of floating IPs", "list"),
            "everywhere": Variable("all hosts", "bool"),
            "network_hosts": Variable("hosts that gained or lost one", "list", commas=True),
            "holders": Variable("hosts that gained one", "list", commas=True),
            **PROJECT,
        },
        instead={"floating_ips": ("floating_ip", "pool", "server", "fixed_ip")},
    ),
    "interface_attach": Playbook(INTERFACES, (("server", "interfaces", "uuids"),), instead=EITHER_INTERFACE),
    "interface_detach": Playbook(INTERFACES, (("server", "interfaces", "uuids"),), instead=EITHER_INTERFACE),
    "import": Playbook(
        {
            "server": Variable("name of the server, of its images and flavor"),
            "source": Variable("path or URL of the OVA or disk"),
            "checksum": Variable("sha256:... of the file; needed for a URL"),
            "disk_format": Variable("what the file is", choices=("ova", "vmdk", "vhd", "vhdx", "vdi", "qcow2", "raw")),
            "flavor": Variable("name of the flavor; as large as the appliance by default"),
            **{name: LAUNCH[name] for name in IMPORTED},
            **PROJECT,
            **WAIT,
        },
        (("server",), ("source",)),
    ),
    "launch": Playbook(
        {**LAUNCH, **WAIT, "explain": Variable("tell it in Nova's steps", "bool")}, WHOM, instead=EITHER_LAUNCH
    ),
    "live_migrate": Playbook(MOVE, WHOM, instead=EITHER),
    "live_resize": of_servers(options_named("flavor")),
    "lock": Playbook({**ACTION, "reason": Variable("why")}, WHOM, hosts=False, instead=EITHER),
    "reachability": Playbook(
        {
            "source": Variable("server, address or network that sends", aliases=("from",)),
            "destination": Variable("server or address that it is sent to", aliases=("to",)),
            "protocol": Variable("tcp, udp, icmp ..."),
            "destination_port": Variable("port, or type of an ICMP message", "int", aliases=("port",)),
            "trace": Variable("walk it through the chains of the hosts", "bool"),
            **PROJECT,
        },
        (("source",), ("destination",)),
        hosts=False,
        changes=False,
    ),
    "migrate": Playbook(MOVE, WHOM, instead=EITHER),
    "pause": of_servers(),
    "security_group_graph": Playbook(
        {
            "picture": Variable("file to draw into: .svg, .png ...", aliases=("file",)),
            "all_projects": Variable("of all projects", "bool"),
            **PROJECT,
        },
        hosts=False,
        changes=False,
    ),
    "plan": Playbook(LAUNCH, WHOM, instead=EITHER_LAUNCH),
    "precache": Playbook(
        {
            "image": Variable("name of an image"),
            "images": Variable("names of images", "list", commas=True),
            "download_by": Variable("who downloads them", choices=("host", "controller")),
            **PROJECT,
        },
        (("image", "images"),),
        instead={"images": ("image",)},
    ),
    "reboot": of_servers(
        SHUTDOWN,
        {
            "reboot_type": Variable(
                "hard: cut off the power", choices=("soft", "hard", "SOFT", "HARD"), aliases=("type",)
            ),
            "hard": Variable("as reboot_type=hard, which is the newer word", "bool"),
        },
    ),
    "rebuild": of_servers(
        SHUTDOWN,
        WAIT,
        options_named("image", "key", "metadata", "user_data", "user_data_encoding", "files", "admin_password"),
    ),
    "release": Playbook({"server": Variable("name of the adopted server"), **PROJECT}, (("server",),)),
    "rescue": of_servers(SHUTDOWN, WAIT, options_named("image", "admin_password")),
    "resize": Playbook(
        {
            **MOVE,
            **options_named("flavor"),
            "confirm": Variable("whether the resizes are confirmed at once", "bool"),
            "same_host": Variable("whether they may stay where they are", choices=("allowed", "never", "only")),
        },
        WHOM,
        instead=EITHER,
    ),
    "resume": of_servers(),
    "revert_resize": of_servers(),
    "rollback": of_servers(SHUTDOWN, WAIT, {"snapshot": Variable("name of the snapshot")}),
    "security_groups": Playbook(
        {
            "security_groups": Variable("groups and their rules", "list"),
            "join": Variable("servers and the groups that they join", "list"),
            "leave": Variable("servers and the groups that they leave", "list"),
            "changed_groups": Variable("UUIDs of groups whose rules or members changed", "list"),
            "changed_members": Variable("UUIDs of servers that joined these groups, or left them", "list"),
            "ports": Variable("UUIDs of ports that changed", "list"),
            **PROJECT,
        },
        (("security_groups", "join", "leave", "changed_groups", "ports"),),
    ),
    "seed": Playbook({}, hosts=False),
    "stack": Playbook(
        {
            "stack": Variable("the document, or its file", "raw"),
            "replace": Variable("replace servers that cannot be changed", "bool"),
            "prune": Variable("remove what this stack made and does not name any more", "bool"),
            **TAKEOVER,
            **REPORT,
        },
        (("stack",),),
        hosts=False,  # asked for when there is something to do on one
    ),
    "server_snapshot": of_servers(
        {"snapshot": Variable("name of the snapshot"), "snapshot_description": Variable("what it is for")}
    ),
    "server_snapshot_delete": of_servers({"snapshot": Variable("name of the snapshot")}),
    "shelve": of_servers(SHUTDOWN),
    "shelve_offload": of_servers(),
    "snapshot": of_servers(
        {"image_name": Variable("name of the image"), "image_properties": Variable("properties of the image", "dict")}
    ),
    "start": of_servers(),
    "stop": of_servers(SHUTDOWN),
    "suspend": of_servers(),
    "terminate": Playbook(SERVERS, WHOM, instead=EITHER),
    "unlock": Playbook({**ACTION, "reason": Variable("why")}, WHOM, hosts=False, instead=EITHER),
    "unpause": of_servers(),
    "unrescue": of_servers(SHUTDOWN, WAIT),
    "unshelve": of_servers(
        SCHEDULING, WAIT, options_named("availability_zone"), {"host": Variable("compute host to go to")}
    ),
    "users": Playbook({}, hosts=False),
    "volume_attach": Playbook(
        {
            **ATTACHMENTS,
            "device": Variable("name of the device in the guest"),
            "delete_on_termination": Variable("the volume goes with the server", "bool"),
        },
        (("volume", "attachments"),),
        instead={"attachments": ("volume", "server", "device", "delete_on_termination")},
    ),
    "volume_backup": Playbook(
        {
            "volume": Variable("name of the volume"),
            "backup": Variable("name or id of the backup"),
            "incremental": Variable("take only what changed since the newest backup", "bool"),
            "backup_state": Variable("absent: delete it", choices=("present", "absent", "restored")),
            "backups": Variable("list of backups that were begun", "list"),
            **PROJECT,
            **TAKEOVER,
        },
        (("backup", "backups"),),
        instead={"backups": ("volume", "backup", "incremental", "backup_state")},
    ),
    "volume_detach": Playbook(ATTACHMENTS, (("volume", "attachments"),), instead={"attachments": ("volume", "server")}),
    "volume_extend": Playbook(VOLUME, (("volume", "volumes"),), instead={"volumes": ("volume", "volume_size")}),
    "volume_revert": Playbook(
        {
            "volume": Variable("name of the volume"),
            "snapshot": Variable("name of its newest snapshot"),
            "volumes": Variable("list of volumes that it was begun of", "list"),
            **PROJECT,
            **TAKEOVER,
        },
        (("volume", "volumes"),),
        instead={"volumes": ("volume", "snapshot")},
    ),
    "volume_snapshot": Playbook(
        {
            "snapshot": Variable("name of the snapshot", aliases=("name",)),
            "volume": Variable("name of the volume"),
            "snapshot_description": Variable("what it is", aliases=("description",)),
            "snapshot_state": Variable("absent: delete it", choices=STATES, aliases=("state",)),
            "snapshots": Variable("list of snapshots", "list"),
            **PROJECT,
            **TAKEOVER,
        },
        (("snapshot", "snapshots"),),
        instead={"snapshots": ("snapshot", "volume", "snapshot_description")},
    ),
    "volume_upload": Playbook(
        {
            "volume": Variable("name of the volume"),
            "image_name": Variable("name of the image"),
            "disk_format": Variable("format of the image", choices=("qcow2", "raw")),
            "volumes": Variable("list of volumes that it was begun of", "list"),
            **PROJECT,
            **TAKEOVER,
        },
        (("volume", "volumes"),),
        instead={"volumes": ("volume", "image_name", "disk_format")},
    ),
    "volumes": Playbook(
        {
            **VOLUME,
            "volume_type": Variable("type of the volume", aliases=("type",)),
            "volume_state": Variable("absent: delete it", choices=STATES, aliases=("state",)),
            "volume_description": Variable("what it is", aliases=("description",)),
            "volume_types": Variable("list of types that there shall be", "list"),
            "host": Variable("compute host that it lies on"),
            "snapshot": Variable("snapshot that it is made from"),
            "source_volume": Variable("volume that it is a copy of"),
            **options_named("image", "availability_zone"),
        },
        (("volume", "volumes"),),
        instead={"volumes": ONE_VOLUME},
    ),
    **UPKEEP,
}

# The only words that playbooks are asked by, as variables of novalite_options
WORDS = frozenset(name for book in PLAYBOOKS.values() for name in book.variables)

# What the API's jobs add of their own
JOBS = frozenset({"novalite_alone", "novalite_reservations", "novalite_user"})
