# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables, as SQLAlchemy Core metadata. A change here needs a migration beside it.

Times are UTC seconds since the epoch (BIGINT/float free of time zones); UUIDs are text with dashes; project ids are
32 hex digits, as clients of the OpenStack API expect them. IPv4 addresses are integers, IPv6 addresses text in
RFC 5952 form. An owner of "" means: every project sees it.
"""

from __future__ import annotations

import sqlalchemy as sa

from . import (
    tables_ec2,
    tables_identity,
    tables_images,
    tables_jobs,
    tables_migrations,
    tables_networking,
    tables_volumes,
)
from .schema import BigId, metadata, numbered, partial_index, table
from .tables_addresses import dns_name, fixed_ip, floating_ip, floating_pool, network, vif

__all__ = [  # the rest is read as tables.<name>
    "BigId",
    "dns_name",
    "fixed_ip",
    "floating_ip",
    "floating_pool",
    "metadata",
    "network",
    "tables_ec2",
    "tables_identity",
    "tables_images",
    "tables_jobs",
    "tables_migrations",
    "tables_networking",
    "tables_volumes",
    "vif",
]

secret = table(  # what keys are derived from (secrets.py); never shown
    "secret",
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.String(64), nullable=False),  # 32 bytes in hex
)

project = table(
    "project",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),  # the playbooks' handle
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("domain_id", sa.String(32), nullable=False, server_default=tables_identity.DEFAULT_DOMAIN),
    sa.Column("display_name", sa.String(64)),  # what Identity shows in other domains than the default; null: the name
    sa.Column("parent_id", sa.String(32), index=True),  # the project above; null: the domain is
    # of its new servers: whether they run again after the death of their host, in which order, and from their images
    sa.Column("ha", sa.Boolean),
    sa.Column("ha_priority", sa.Integer),
    sa.Column("ha_rebuild", sa.Boolean),
    sa.Column("extra", sa.JSON, nullable=False, server_default="{}"),  # attributes of the clients' own
)
sa.Index("uq_project_domain_id", project.c.domain_id, project.c.display_name, unique=True)

quota = table(  # only what differs from the defaults; -1 = unlimited
    "quota",
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("resource", sa.String(32), primary_key=True),
    sa.Column("hard_limit", sa.BigInteger, nullable=False),
    sa.CheckConstraint("hard_limit >= -1", name="hard_limit"),
)

flavor = numbered(
    "flavor",
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.BigInteger, nullable=False),  # MiB, Nova's name for it
    sa.Column("root_gb", sa.BigInteger, nullable=False),  # GiB; 0 = the image's own size
    sa.Column("ephemeral_gb", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("swap_mb", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("extra_specs", sa.JSON, nullable=False),
    sa.Column("flavorid", sa.String(255)),  # what clients name it by; null: its id as text
    sa.Column("is_public", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("description", sa.Text),
    sa.CheckConstraint("vcpus >= 1 AND memory_mb >= 1 AND root_gb >= 0", name="sizes"),
)
sa.Index("uq_flavor_flavorid", flavor.c.flavorid, unique=True)

image = table(
    "image",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False, server_default=""),  # a project; "": the cloud, for everybody
    sa.Column("name", sa.String(255), nullable=False),  # the playbooks' handle
    sa.Column("display_name", sa.String(255)),  # what the APIs show; null: the name, "": none
    sa.Column("status", sa.String(16), nullable=False, server_default="active"),  # Glance's words
    sa.Column("visibility", sa.String(16), nullable=False, server_default="private"),
    sa.Column("disk_format", sa.String(16), nullable=False),  # "": nobody has said it yet
    sa.Column("container_format", sa.String(16), nullable=False, server_default="bare"),
    sa.Column("source", sa.Text, nullable=False),  # absolute path on the controller, or http(s) URL; "": no data yet
    sa.Column("checksum", sa.String(80), nullable=False),  # sha256:<64 hex>; "": no data yet
    sa.Column("md5", sa.String(32)),  # of the same; null: nobody has counted it
    sa.Column("size", sa.BigInteger, nullable=False),  # bytes of the file; while it comes in, of what has come
    sa.Column("virtual_size", sa.BigInteger, nullable=False),  # bytes of the disk in it
    # {"source", "checksum", "size"} or null
    sa.Column("kernel", sa.JSON(none_as_null=True)),
    sa.Column("ramdisk", sa.JSON(none_as_null=True)),
    sa.Column("cmdline", sa.Text, nullable=False, server_default=""),
    sa.Column("min_disk_gb", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("min_ram_mb", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("properties", sa.JSON, nullable=False),
    sa.Column("tags", sa.JSON, nullable=False, server_default="[]"),  # sorted list of texts
    sa.Column("protected", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("os_hidden", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("transfer", sa.String(36)),  # names the upload under way: who lost it to another must write nothing
    sa.Column("fault", sa.Text),  # why its data were refused the last time
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("owner", "name"),
    sa.CheckConstraint(
        "disk_format IN ('', 'raw', 'qcow2', 'vmdk', 'vhd', 'vhdx', 'vdi', 'ploop', 'iso', 'ami', 'ari', 'aki')",
        name="disk_format",
    ),
    sa.CheckConstraint(
        "container_format IN ('', 'bare', 'ami', 'ari', 'aki', 'ovf', 'ova', 'docker', 'compressed')",
        name="container_format",
    ),
    sa.CheckConstraint(
        "status IN ('queued', 'saving', 'uploading', 'importing', 'active', 'killed', 'deactivated')", name="status"
    ),
    sa.CheckConstraint("visibility IN ('public', 'private', 'shared', 'community')", name="visibility"),
)

keypair = table(
    "keypair",
    # its user's own, in whatever project; or, with "" here, shared by all of the project
    sa.Column("user_id", sa.String(32), primary_key=True, default=""),
    sa.Column("project_id", sa.String(32), primary_key=True, default=""),  # of a shared one; else ""
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("type", sa.String(8), nullable=False, server_default="ssh"),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(47), nullable=False),  # MD5 with colons, as Nova's API shows it
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

security_group = numbered(  # in the chain name nova-sg-<id>
    "security_group",
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.UniqueConstraint("project_id", "name"),
)

security_group_rule = table(
    "security_group_rule",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("group_id", sa.ForeignKey("security_group.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("direction", sa.String(8), nullable=False, server_default="ingress"),
    sa.Column("ethertype", sa.String(4), nullable=False),  # IPv4 | IPv6
    sa.Column("protocol", sa.String(8), nullable=False),  # any | tcp | udp | icmp | icmpv6 | a number
    sa.Column("port_min", sa.Integer),  # for ICMP: the type
    sa.Column("port_max", sa.Integer),  # for ICMP: the code
    sa.Column("cidr", sa.String(43)),
    # as the maker wrote them, where that is not how the Network API shows what is stored
    sa.Column("protocol_said", sa.String(16)),
    sa.Column("cidr_said", sa.String(43)),
    # without a cascade: a group that a rule names as its source cannot be deleted
    sa.Column("remote_group_id", sa.ForeignKey("security_group.id")),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.CheckConstraint("ethertype IN ('IPv4', 'IPv6')", name="ethertype"),
    sa.CheckConstraint("direction IN ('ingress', 'egress')", name="direction"),
)

partial_index(
    "ix_security_group_rule_remote",
    security_group_rule.c.remote_group_id.is_not(None),
    security_group_rule.c.remote_group_id,
)

compute_host = numbered(
    "compute_host",
    sa.Column("name", sa.String(255), nullable=False, unique=True),  # the inventory hostname
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("disabled_reason", sa.String(255)),
    sa.Column("up", sa.Boolean, nullable=False),
    sa.Column("down_reason", sa.String(255)),
    sa.Column("last_seen_at", sa.BigInteger, nullable=False),
    sa.Column("zone", sa.String(255), nullable=False, server_default="nova"),
    sa.Column("aggregates", sa.JSON, nullable=False),  # list of names
    sa.Column("traits", sa.JSON, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.BigInteger, nullable=False),
    sa.Column("disk_gb", sa.BigInteger, nullable=False),
    sa.Column("reserved_vcpus", sa.Integer, nullable=False),
    sa.Column("reserved_memory_mb", sa.BigInteger, nullable=False),
    sa.Column("reserved_disk_gb", sa.BigInteger, nullable=False),
    sa.Column("cpu_ratio", sa.Float, nullable=False),
    sa.Column("ram_ratio", sa.Float, nullable=False),
    sa.Column("disk_ratio", sa.Float, nullable=False),
    # sums over `allocation`, kept by the same transactions, so that a claim is one guarded UPDATE
    sa.Column("vcpus_used", sa.Integer, nullable=False, server_default="0"),
    sa.Column("memory_mb_used", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("disk_gb_used", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("num_instances", sa.Integer, nullable=False, server_default="0"),  # with a claim
    # what guests take that are not in this ledger, as the host last reported them
    sa.Column("vcpus_others", sa.Integer, nullable=False, server_default="0"),
    sa.Column("memory_mb_others", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("disk_gb_others", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("count_foreign", sa.String(8), nullable=False, server_default="running"),  # or all, none
    sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("failed_builds", sa.Integer, nullable=False, server_default="0"),  # since the last one that succeeded
    # where it keeps images, instances and volumes; it does not change while there are any
    sa.Column("state_dir", sa.String(4096), nullable=False, server_default="/var/lib/novalite"),
    sa.Column("looked_at", sa.BigInteger),  # when reconcile.yml last went over it, and
    sa.Column("differences", sa.Integer),  # how many things it put right there
    # the machine that has this name: machine_id, product_uuid; null: not asked yet
    sa.Column("identity", sa.JSON(none_as_null=True)),
    # the mark that the last trip is known to have left there, and those sent since whose arrival is not known
    sa.Column("mark", sa.String(32)),
    sa.Column("marks_sent", sa.JSON, nullable=False, server_default="[]"),
    # hypervisor_type, hypervisor_version, arch, cpu_model, domain_type, machine, disk_cache, address, ...
    sa.Column("facts", sa.JSON, nullable=False),
)

aggregate = numbered(
    "aggregate",
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("zone", sa.String(255)),  # null: it is no availability zone
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False, server_default="0"),  # 0: nobody remembers
    sa.Column("updated_at", sa.BigInteger, nullable=False, server_default="0"),  # 0: never
)

aggregate_host = table(
    "aggregate_host",
    sa.Column("aggregate_id", sa.ForeignKey("aggregate.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("host", sa.String(255), primary_key=True),
)

allocation = table(  # no key to instance: a plan (check mode) claims before the instance is written
    "allocation",
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("compute_host_id", sa.ForeignKey("compute_host.id"), primary_key=True, index=True),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.BigInteger, nullable=False),
    sa.Column("disk_gb", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    # NUMA nodes, CPUs, pages and devices of the host that it holds (_model/numa.py, Claim); null: none of its own
    sa.Column("numa", sa.JSON(none_as_null=True)),
)
partial_index("ix_allocation_numa", allocation.c.numa.is_not(None), allocation.c.compute_host_id)

instance = numbered(  # instance-%08x, nova-inst-<id>; never used again
    "instance",
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("hostname", sa.String(63), nullable=False),
    sa.Column("flavor", sa.JSON, nullable=False),  # as it was at launch, like Nova's embedded flavor
    sa.Column("image", sa.JSON, nullable=False),  # likewise; a later change of the record changes no instance
    sa.Column("key_name", sa.String(255)),
    sa.Column("public_key", sa.Text),
    sa.Column("availability_zone", sa.String(255)),  # as requested
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("host", sa.String(255)),  # compute_host.name
    sa.Column("vm_state", sa.String(32), nullable=False),  # building active stopped error shelved deleted
    sa.Column("task_state", sa.String(32)),  # scheduling networking spawning deleting; null = at rest
    sa.Column("power_state", sa.Integer, nullable=False, server_default="0"),  # Nova's: 0 none, 1 running, 4 shutdown
    sa.Column("fault", sa.JSON(none_as_null=True)),  # {"code", "message", "created"}
    sa.Column("attempts", sa.JSON, nullable=False),  # hosts that failed to build it
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.Column("launched_at", sa.BigInteger),
    sa.Column("terminated_at", sa.BigInteger),
    # what only the guest is told is in no view of an instance: it is long, and may be secret
    sa.Column("user_data", sa.Text),  # base64, as clients send it
    sa.Column("config_drive", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("files", sa.JSON(none_as_null=True)),  # [{"path", "content" (base64)}] to inject
    sa.Column("password_hash", sa.Text),  # crypt(5) of the administrator's password; shown to nobody
    sa.Column("password_optional", sa.Boolean, nullable=False, server_default=sa.false()),  # nobody asked for it
    sa.Column("display_name", sa.String(255)),  # what the APIs show; null: the name. Several may have the same
    sa.Column("description", sa.String(255)),
    sa.Column("user_id", sa.String(32)),
    sa.Column("reservation_id", sa.String(16)),  # those that one request asked for
    sa.Column("locked", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("locked_reason", sa.String(255)),
    sa.Column("tags", sa.JSON, nullable=False, server_default="[]"),  # sorted list of texts
    sa.Column("access_ip_v4", sa.String(15)),  # what the APIs are told to show, and nothing else
    sa.Column("access_ip_v6", sa.String(39)),
    sa.Column("disk_config", sa.String(8), nullable=False, server_default="MANUAL"),  # or AUTO
    sa.Column("rescue_image", sa.JSON(none_as_null=True)),  # as `image`, while it is rescued
    sa.Column("disk_image", sa.JSON(none_as_null=True)),  # as `image`: what its disk stands on since it was shelved
    sa.Column("cdroms", sa.JSON(none_as_null=True)),  # [image as above, or null: an empty drive]; null: no drive
    sa.Column("adopted", sa.JSON(none_as_null=True)),  # of a guest that others made: see adoption.Adopted; null: ours
    # whether it runs again after the death of its host, in which order, and anew from its image
    sa.Column("ha", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("ha_priority", sa.Integer, nullable=False, server_default="0"),
    sa.Column("ha_rebuild", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("ha_reason", sa.Text),  # for which it does not run now
    sa.Column("deleted", BigId, nullable=False, server_default="0"),  # its own id once deleted: frees the name
    sa.UniqueConstraint("project_id", "name", "deleted"),
)
# What is asked of one host reads its own rows, however many instances there are, and were; counts read no rows at all
sa.Index("ix_instance_host", instance.c.host, instance.c.deleted, instance.c.vm_state, instance.c.power_state)
# Lists are in this order unless they are asked for in another: a page is read, and names are looked through, without
# the other instances' rows. Not `deleted` first: SQLite would take it for the best way to find anything that is there
_LISTED = (instance.c.created_at, instance.c.id, instance.c.deleted, instance.c.display_name, instance.c.name)
sa.Index("ix_instance_listed", *_LISTED)
sa.Index("ix_instance_listed_of_project", instance.c.project_id, *_LISTED)
sa.Index("ix_instance_hostname", instance.c.project_id, instance.c.hostname)  # of which each project has one
# What is quiet is not read to find what is not
partial_index("ix_instance_busy", sa.text("task_state IS NOT NULL"), instance.c.task_state)

# what each host is busy with; with all that the count needs, or SQLite takes ix_instance_host, which has it
_BUILDING = (instance.c.deleted, instance.c.host, instance.c.vm_state)
partial_index("ix_instance_building", sa.text("vm_state = 'building'"), *_BUILDING)
# read in each round of the watch; written as SQLite has it in a query, or it does not take it
_HA = (instance.c.ha, instance.c.deleted, instance.c.host, instance.c.ha_reason)
partial_index("ix_instance_ha", instance.c.ha == sa.true(), *_HA)
partial_index("ix_instance_adopted", sa.text("adopted IS NOT NULL"), instance.c.uuid)

instance_security_group = table(
    "instance_security_group",
    sa.Column("instance_id", sa.ForeignKey("instance.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("group_id", sa.ForeignKey("security_group.id"), primary_key=True, index=True),
)

server_group = table(
    "server_group",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("policy", sa.String(32), nullable=False),
    sa.Column("max_server_per_host", sa.Integer, nullable=False, server_default="1"),  # for anti-affinity
    sa.Column("user_id", sa.String(32)),  # who asked for it; null: a playbook
    sa.UniqueConstraint("project_id", "name"),
    sa.CheckConstraint("policy IN ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')", name="policy"),
    sa.CheckConstraint("max_server_per_host >= 1", name="max_server_per_host"),
)

server_group_member = table(  # an instance is in one group at most, as in Nova
    "server_group_member",
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), primary_key=True),
    sa.Column("group_id", sa.ForeignKey("server_group.id", ondelete="CASCADE"), nullable=False, index=True),
)

instance_action = numbered(
    "instance_action",
    sa.Column("instance_uuid", sa.String(36), nullable=False, index=True),
    sa.Column("action", sa.String(32), nullable=False),  # create, delete, ...
    sa.Column("request_id", sa.String(40), nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("message", sa.Text),  # "Error" detail for people, without secrets
    sa.Column("user_id", sa.String(32)),
    sa.Column("project_id", sa.String(32)),
    sa.Column("details", sa.JSON, nullable=False),  # the scheduler's explanation, ...
)

instance_action_event = numbered(
    "instance_action_event",
    sa.Column("action_id", sa.ForeignKey("instance_action.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("event", sa.String(64), nullable=False),
    sa.Column("host", sa.String(255)),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("result", sa.String(16)),  # Success | Error
)

site_record = table(
    "site_record",
    sa.Column("site", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), primary_key=True),  # a project's id; "": public
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("reference", sa.String(64), nullable=False),  # the record's own id when the stack made it
)

ledger_identity = table(  # one row, written when the ledger is made
    "ledger_identity",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("uuid", sa.String(36), nullable=False),
    # why nothing may be changed until ledger_rebuild.yml has asked all hosts, and since when: the ledger was restored,
    # or a host has met a newer copy of it
    sa.Column("behind", sa.Text),
    sa.Column("behind_since", sa.BigInteger),
    sa.CheckConstraint("id = 1", name="single"),
)

# in a join of interfaces and instances: the instance is known by its host name on the interface's network
NAMED = sa.and_(
    dns_name.c.network_id == vif.c.network_id,
    dns_name.c.name == instance.c.hostname,
    dns_name.c.instance_uuid == instance.c.uuid,
)
