# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of networks, volumes, images, security groups and projects, declared once for all who take them
(options.py)."""

from __future__ import annotations

from .ha_wishes import LEAST, MOST
from .options import MAX_TEXT, NAME, Option, Schema, closed
from .server_options import stack_schemas as schemas_of_servers

TEXT = (None, MAX_TEXT)
KEY = Option("name", limits=NAME, required=True)
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string", "maxLength": MAX_TEXT}}
SCALARS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}

NETWORK = (
    KEY,
    Option("cidr", change="unused"),
    Option("cidr_v6", nullable=True, change="unused"),
    Option("manager", choices=("flat", "flat_dhcp", "vlan", "vxlan"), change="unused"),
    Option("gateway", nullable=True),
    Option("gateway_v6", nullable=True),
    Option("bridge", change="unused"),
    Option("bridge_interface", nullable=True, change="unused"),
    Option("vlan", "int", (1, 4094), change="unused"),
    Option("vni", "int", (1, 2**24 - 1), change="unused"),
    Option("isolated", "bool", change="unused"),
    Option("snat", "bool"),
    Option("dhcp", "bool"),
    Option("dns", "list", new=[]),
    Option("ntp", "list", new=[]),
    Option("ipv6_mode", choices=("eui64", "stable-privacy"), new="eui64", change="unused"),
    Option("port_security_enabled", "bool", new=True),
    Option("allow_project_net_traffic", "bool", new=False),
    Option("is_default", "bool", new=False),
    Option("domain", new="novalocal"),
    Option("mtu", "int", (1, None)),
    Option("reserved", "list", new=[]),
    Option("lease_seconds", "int", (0, None), new=86400),
    Option("quarantine_seconds", "int", (0, None), new=600),
)
NETWORK_TEXTS = r"""
name: Name of the network.
cidr:
  - Range of IPv4 addresses, between C(/16) and C(/30). Required for a new network.
  - No two networks may overlap, unless one of them is isolated.
  - While instances use the network, its ranges, manager, bridge, VLAN and VNI cannot change.
manager:
  - How the network reaches the guests and connects the hypervisors. Nova's network managers, and V(vxlan).
  - V(flat) has no DHCP. Its guests are given a static configuration at launch.
  - V(flat_dhcp) is a bridge with DHCP.
  - V(vlan) is a bridge on a VLAN of O(networks[].bridge_interface).
  - V(vxlan) is a bridge on a tunnel between the hypervisors, which needs no switch that knows of it.
  - A new network that does not say is V(vlan) or V(vxlan) if it has O(networks[].vlan) or O(networks[].vni),
    V(flat) if it has no DHCP, and V(flat_dhcp) otherwise.
gateway:
  - Default gateway of the guests, an address in the range. An empty text takes it away.
  - Without it, each hypervisor's own address in the network is its guests' gateway.
cidr_v6: Range of IPv6 addresses, a C(/64). An empty text takes it away.
gateway_v6: IPv6 gateway, in the range or link-local. An empty text takes it away.
bridge:
  - Name of the bridge on the hypervisors.
  - C(br<vlan>) or C(br<vni>) for a new network that does not say, or the first free one from V(br100) on.
bridge_interface:
  - Interface of the hypervisors that connects their bridges. An empty text takes it away.
  - Without it a flat network stays within each hypervisor, and a VLAN cannot be. A VXLAN has none.
vlan:
  - VLAN on O(networks[].bridge_interface) that carries the network, V(1) to V(4094).
  - The first free one from V(100) on for a V(vlan) network that does not say.
vni:
  - VXLAN network identifier, V(1) to V(16777215).
  - The first free one from V(10000) on for a V(vxlan) network that does not say.
isolated:
  - Whether the network has a network namespace of its own on each hypervisor, so that its range may overlap
    with those of others.
  - V(true) for a new V(vxlan) network that does not say, V(false) for the others.
snat:
  - Whether the hypervisors let the guests out under their own address. They must be the guests' gateway.
  - V(true) for a new network that does not say, unless it is V(flat) or has a gateway of its own.
dhcp:
  - Whether the hypervisors answer DHCP. The managers V(flat) and V(flat_dhcp) decide it.
  - V(true) for a new V(vlan) or V(vxlan) network that does not say.
dns: Addresses of up to eight DNS servers for the guests. With none, the hypervisor's own address.
ntp: Addresses of up to eight NTP servers for the guests.
ipv6_mode:
  - How the guests' IPv6 addresses are made. V(eui64) out of the MAC, V(stable-privacy) by RFC 7217, which tells
    nobody the MAC.
port_security_enabled:
  - Whether security groups, and the check of what guests send under which address, apply to interfaces that are
    yet to be made on the network. What interfaces have already, ports say.
allow_project_net_traffic:
  - Whether the guests of the network reach each other whatever their security groups say, as Nova's
    C(allow_same_net_traffic) has it. What comes from elsewhere is judged by their groups.
  - Guests that run are told by C(firewall.yml).
is_default:
  - Whether servers that name no network get this one, where their project sees several. One network of the ledger can
    be it; another one becomes it when this one is not any more, also in the same task.
domain: DNS domain of the guests.
mtu: MTU of bridge and guests, in bytes. V(1450) for a new V(vxlan) network that does not say.
reserved:
  - Addresses that are never handed out, each an address, a range C(a-b) or a C(cidr) in the network's range.
  - Replaces the list that the network has. The network, broadcast and gateway addresses are reserved anyway.
lease_seconds: DHCP lease time.
quarantine_seconds: How long a released address is kept back if there are others.
"""
# Of `reserved` the pool's rows say it
NETWORK_COLUMNS = tuple(option.name for option in NETWORK if option.name not in ("name", "reserved"))

VOLUME = (
    KEY,
    Option("size", "int", (1, None), "GiB. It can grow, and never shrink.", change="ignored"),
    Option("type", limits=NAME, description="A volume type that there is.", new="file", change="never"),
    Option("image", limits=NAME, description="What it is made of.", change="ignored"),
    Option("snapshot", limits=NAME, description="What it is made of.", change="ignored"),
    Option("source_volume", limits=NAME, description="What it is a copy of.", change="ignored"),
    Option("host", limits=NAME, description="The compute host that has it.", change="never"),
    Option("availability_zone", limits=NAME, change="ignored"),
    Option("description", limits=TEXT),
    Option("metadata", "dict", json_schema=TEXTS),
    Option("bootable", "bool", new=False),
    Option("readonly", "bool", new=False),
)
VOLUME_TEXTS = r"""
name: Name of the volume, unique in its project.
size: Its size in GiB. May be left out where it is made of something, for that one's size.
type: Name of its type. Volumes of type V(file) are files on the compute host.
image: Name of the image that it is made of. A server can start from it.
snapshot: Name of the snapshot that it is made of.
source_volume: Name of the volume that it is a copy of.
host: The compute host that shall have it. By default the one of its first server, or the emptiest.
availability_zone: The zone of that host.
description: Free text.
metadata: Keys and values for users.
bootable: Whether a server can start from it.
readonly: Whether servers can only read it.
"""

_FILE = (Option("source", required=True), Option("checksum"))
_BOOT_FILE: Schema = {"anyOf": [{"type": "string"}, closed(_FILE, site=True)]}
IMAGE = (
    KEY,
    Option("source"),
    Option("disk_format", choices=("raw", "qcow2", "iso", "vmdk", "vhd", "vhdx", "vdi", "ova")),
    Option("checksum", json_schema={"type": "string", "pattern": "^sha256:[0-9a-fA-F]{64}$"}),
    Option("any_content", "bool", default=False, change="ignored"),
    Option("kernel", "raw", json_schema=_BOOT_FILE),
    Option("ramdisk", "raw", json_schema=_BOOT_FILE),
    Option("cmdline", new=""),
    Option("min_disk_gb", "int", (0, None), new=0),
    Option("min_ram_mb", "int", (0, None), new=0),
    Option("properties", "dict", json_schema=SCALARS, new={}),
)
IMAGE_TEXTS = r"""
name: Name of the image.
source:
  - Absolute path of the disk on the controller, also as C(file:///path), or its HTTP or HTTPS URL. Required for
    a new image.
  - A local file that has the size and time of the last run is not read again.
disk_format:
  - What the file is. Required for a new image.
  - V(vmdk), V(vhd), V(vhdx), V(vdi), and the disks of an V(ova), are converted to qcow2 on the controller, as are
    files compressed with xz, gzip, bzip2 or zstd (by their suffix) unpacked there. The record has the converted file.
  - An V(iso) is a CD. A server that is launched from one starts from it, with an empty root disk to install on.
  - Of an V(ova) the disk that it boots from gets the name, further ones C(NAME-disk2) and so on.
checksum: C(sha256:) and 64 hexadecimal digits. Required for a URL, computed for a local file.
any_content:
  - Takes a raw disk in a local file whatever it holds. Otherwise it must have a partition table, a boot
    signature or a file system, since most files without one are no disks.
  - Compressed files, archives and web pages are refused all the same.
kernel:
  - Kernel that the hypervisor starts, instead of the disk's boot loader.
  - A path or URL, or a dictionary of C(source) and C(checksum). A URL needs the checksum. An empty text takes
    the kernel away.
ramdisk: Initial RAM disk for the kernel, given like O(images[].kernel).
cmdline: Command line for the kernel, such as V(root=/dev/vda console=ttyS0).
min_disk_gb: Least root disk, in GiB, of flavors that the image can be used with.
min_ram_mb: Least memory, in MiB, of flavors that the image can be used with.
properties:
  - Further properties in Glance's terms. Replaces all properties of the image but C(os_host_mount).
  - C(os_host_mount) says whether hosts may mount the image's file system, to inject into its disks; an image
    with O(images[].source) gets V(yes) unless told V(no), since it is you who chose it.
"""

RULE = (
    Option("direction", choices=("ingress", "egress"), default="ingress"),
    Option("protocol", json_schema={"type": ["string", "integer"], "maxLength": 16}, required=True),
    Option("port_min", "int", (1, 65535)),
    Option("port_max", "int", (1, 65535)),
    Option("icmp_type", "int", (-1, 255)),
    Option("icmp_code", "int", (-1, 255)),
    Option("cidr", limits=(None, 43)),
    Option("ethertype", choices=("IPv4", "IPv6")),
    Option("remote_group", limits=NAME),
)
SECURITY_GROUP = (
    KEY,
    Option("description", limits=TEXT, new=""),
    Option(
        "rules",
        "list",
        description="All of them; those that are not listed are removed.",
        elements="dict",
        suboptions=RULE,
    ),
)
SECURITY_GROUP_TEXTS = r"""
name: Name of the group.
description: What the group is for.
rules:
  - All rules of the group, in any order. Those that are not listed are removed.
  - Left out, the rules stay as they are.
rules.direction:
  - V(ingress) is what others may send to the instances of the group, V(egress) what these may send.
  - The answers to what is allowed are allowed, too.
rules.protocol:
  - V(tcp), V(udp), V(sctp), V(icmp), V(icmpv6), V(gre), V(esp), V(ah), V(any), another name that Neutron
    has for a protocol, such as V(vrrp), or the number of a protocol, V(1) to V(255).
rules.port_min: First port, for V(tcp), V(udp) and V(sctp). Without ports all are allowed.
rules.port_max: Last port. The same as O(security_groups[].rules[].port_min) when it is left out.
rules.icmp_type: ICMP type, for V(icmp) and V(icmpv6). All are allowed without it.
rules.icmp_code: ICMP code.
rules.cidr:
  - Range of addresses, IPv4 or IPv6, that may connect or, for V(egress), that may be connected to.
  - Everyone, of O(security_groups[].rules[].ethertype), without it and
    O(security_groups[].rules[].remote_group).
rules.ethertype: Needed without O(security_groups[].rules[].cidr) only. IPv4 then, unless it says otherwise.
rules.remote_group:
  - Name of a group of the same project, whose instances are the other end. It may be the group itself.
"""

PROJECT = (
    Option("name", limits=(1, 64), required=True),
    Option(
        "quotas",
        "raw",
        description="Limits by resource, -1 for none; or the word for no limits at all.",
        json_schema={
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "integer", "minimum": -1}},
                {"const": "unlimited"},
            ]
        },
    ),
    Option("ha", "bool", description="What new servers have of which nothing else is said; so with those below."),
    Option("ha_priority", "int", (LEAST, MOST)),
    Option("ha_rebuild", "bool"),
)
PROJECT_TEXTS = r"""
name: Name of the project, of at most 64 characters.
quotas:
  - Limits by resource. V(-1) is unlimited. What is not named stays as it is.
  - The word V(unlimited) stands for V(-1) of everything that a project has some of, for a cloud that is its
    operator's alone. What one request may bring (metadata, injected files), V(jobs) and V(server_snapshots) stay
    bounded.
  - A new project C(demo), in which playbooks act where none is named, is the operator's own, and V(unlimited) unless
    quotas are named.
  - The resources, and what another project has that never said otherwise, are V(instances) 10, V(cores) 20,
    V(ram) 51200 MiB, V(fixed_ips) -1, V(floating_ips) 10, V(key_pairs) 100, V(security_groups) 10,
    V(security_group_rules) 20 for each group, V(networks) 3 and V(images) 100 of its own,
    V(image_size_total) 102400 MiB of images that it uploads, V(server_groups) 10,
    V(server_group_members) 10 for each group, V(metadata_items) 128, V(injected_files) 5 and
    V(server_snapshots) 5 for each instance,
    V(injected_file_content_bytes) 10240 and V(injected_file_path_length) 255 for each file,
    V(backups) 10 of servers, V(backup_gigabytes) 1000 of their disks, for each backup,
    V(jobs) 500 that wait or run.
ha:
  - Whether new servers of the project run again on another host when their own is proven dead, where neither they nor
    their flavors say so; see C(ha) of M(novalite.cloud.server). Left out, it stays as it is.
ha_priority: Which servers of a dead host get places first, the highest number, V(-100) to V(100).
ha_rebuild: Whether a new disk made of the image will do for them, where their own dies with their host.
"""

_STATE: Schema = {"state": {"$ref": "#/$defs/state"}}
_PUBLIC: Schema = {
    "public": {
        "type": "boolean",
        "default": False,
        "description": "Every project sees it; otherwise it is the project's own.",
    }
}


def _of_site(description: str, options: tuple[Option, ...], more: Schema) -> Schema:
    schema = closed(options, site=True)
    return {"type": "object", "description": description, **schema, "properties": {**schema["properties"], **more}}


def stack_schemas() -> dict[str, Schema]:
    """The nouns of a site's document, by name."""
    return {
        "project": closed(PROJECT, site=True),
        "image": _of_site("An image.", IMAGE, {**_PUBLIC, **_STATE}),
        "network": _of_site("A network.", NETWORK, {**_PUBLIC, **_STATE}),
        "security_group": _of_site("A group of rules. What no rule allows is denied.", SECURITY_GROUP, _STATE),
        "volume": _of_site("A disk that servers are given, and that outlives them.", VOLUME, _STATE),
        **schemas_of_servers(),
    }
