# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables in routes, and objects of project `alt` to put there: nobody else may know of them."""

from __future__ import annotations

import dataclasses
import re
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa
from werkzeug.routing import AnyConverter, Rule

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_images, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import (
    access_rules,
    credentials,
    kept_credentials,
    trusts,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from tests.api.seeds import PUBLIC_KEY, Api
from tests.support.rows import an_image

# Where a route has a variable, it is looked up by the service (first segment of the path) and by the segment before it:
# which object of `alt` goes there. Whoever adds a route with objects of a new kind adds them here.
OWNED: dict[tuple[str, str], str] = {
    ("identity", "projects"): "project",
    ("identity", "users"): "user",
    ("identity", "application_credentials"): "application_credential",
    ("identity", "OS-EC2"): "ec2_credential",
    ("identity", "credentials"): "kept_credential",
    ("identity", "access_rules"): "access_rule",
    ("identity", "trusts"): "trust",
    ("compute", "servers"): "server",
    ("compute", "os-instance-actions"): "request",
    ("compute", "os-interface"): "port",
    ("compute", "migrations"): "nothing",
    ("compute", "os-volume_attachments"): "nothing",
    ("compute", "os-keypairs"): "keypair",
    ("compute", "os-server-groups"): "server_group",
    ("compute", "os-quota-sets"): "project",
    ("compute", "os-quota-class-sets"): "nothing",
    ("compute", "os-simple-tenant-usage"): "project",
    ("compute", "os-security-groups"): "security_group",
    ("compute", "os-security-group-rules"): "security_group_rule",
    ("compute", "os-floating-ips"): "floating_ip",
    ("compute", "os-networks"): "network",
    ("compute", "os-tenant-networks"): "network",
    ("compute", "os-volumes"): "volume",
    ("compute", "os-snapshots"): "volume_snapshot",
    ("compute", "images"): "image",
    ("image", "images"): "image",
    ("network", "networks"): "network",
    ("network", "network-ip-availabilities"): "network",
    ("network", "subnets"): "subnet",
    ("network", "subnetpools"): "subnet_pool",
    ("network", "address-scopes"): "address_scope",
    ("network", "ports"): "port",
    ("network", "routers"): "router",
    ("network", "security-groups"): "security_group",
    ("network", "security-group-rules"): "security_group_rule",
    ("network", "floatingips"): "floating_ip",
    ("network", "quotas"): "project",
    ("volume", "v3"): "project",
    ("volume", "os-quota-sets"): "project",
    ("volume", "volumes"): "volume",
    ("volume", "snapshots"): "volume_snapshot",
    ("volume", "backups"): "volume_backup",
    ("volume", "attachments"): "volume_attachment",
    **{
        ("volume", kind): "nothing"  # there is none of anybody
        for kind in (
            *("cgsnapshots", "clusters", "consistencygroups", "default-types", "group_snapshots"),
            *("group_types", "groups", "messages", "qos-specs"),
        )
    },
    ("volume", "os-volume-transfer"): "volume_transfer",
    ("volume", "volume-transfers"): "volume_transfer",
    ("v1", "instances"): "server",
    ("v1", "jobs"): "job",
    ("v1", "backups"): "server_backup",
    ("instances", "instances"): "server",
    ("networks", "networks"): "network",
    ("jobs", "jobs"): "job",
    ("runs", "runs"): "run",
    ("security-groups", "security-groups"): "security_group",
    ("keys", "keys"): "keypair",
    ("volumes", "volumes"): "volume",
    ("floating-ips", "floating-ips"): "floating_ip",
    ("users", "users"): "user",
    ("projects", "projects"): "project",
}
# What belongs to no project, with a value that is there (or a name that anybody may choose).
SHARED: dict[tuple[str, str], str] = {
    ("identity", "domains"): "default",
    ("identity", "regions"): "RegionOne",
    ("identity", "services"): "nosuch",
    ("identity", "endpoints"): "nosuch",
    ("identity", "roles"): "nosuch",
    ("identity", "groups"): "nosuch",
    ("identity", "tags"): "tag",
    ("compute", "flavors"): "1",
    ("compute", "os-extra_specs"): "key",
    ("compute", "os-flavor-access"): "nosuch",
    ("compute", "metadata"): "key",
    ("compute", "tags"): "tag",
    ("compute", "ips"): "alts",
    ("compute", "os-server-tags"): "tag",
    ("compute", "os-hypervisors"): "1",
    ("compute", "os-services"): "1",
    ("compute", "os-hosts"): "hv1",
    ("compute", "hv1"): "startup",
    ("compute", "os-aggregates"): "1",
    ("compute", "os-availability-zone"): "nova",
    ("compute", "os-migrations"): "1",
    ("compute", "os-instance_usage_audit_log"): "2026-01-01",
    ("compute", "extensions"): "os-keypairs",
    ("compute", "v2.1"): "nosuch",  # whatever is no route
    ("instances", "consoles"): "novnc",
    ("console", "console"): "novnc",
    ("image", "tags"): "tag",
    ("image", "members"): "nosuch",
    ("image", "schemas"): "image",
    ("image", "namespaces"): "nosuch",
    ("image", "metadefs"): "namespace",
    ("image", "tasks"): "nosuch",
    ("network", "extensions"): "router",
    ("network", "tags"): "tag",
    ("network", "agents"): "nosuch",
    ("volume", "types"): "default",
    ("volume", "metadata"): "key",
    ("volume", "extra_specs"): "key",
    ("volume", "extensions"): "nosuch",
    ("volume", "os-quota-class-sets"): "default",
    ("volume", "os-hosts"): "hv1@file",
    ("volume", "capabilities"): "hv1@file",
    ("v1", "hosts"): "hv1",
    ("v1", "backup-policies"): "nightly",
    ("hosts", "hosts"): "hv1",
    ("static", "static"): "1",
    ("static", "1"): "style.css",
}

ACTIONS = {"instances": "stop", "jobs": "cancel"}  # of the pages
VARIABLE = re.compile(r"<(?:[^:<>]+:)?([^<>:]+)>")


@dataclasses.dataclass(frozen=True)
class Objects:
    """Ids of what belongs to `alt`, by kind; of what nobody has, a random one."""

    ids: t.Mapping[str, str]

    def id(self, kind: str) -> str:
        return self.ids[kind]

    def nobodys(self, kind: str) -> str:
        """An id of the same form that is nobody's."""
        identifier = self.ids[kind]
        if kind == "keypair":
            return "nosuch"
        if kind == "run":
            return "999999"
        if kind == "request":
            return f"req-{uuid.uuid4()}"
        return str(uuid.uuid4()) if "-" in identifier else uuid.uuid4().hex


def make(api: Api) -> Objects:
    """Give `alt` one of each kind."""
    project, user, now = api.projects["alt"], api.users["alt"], int(time.time())
    owned = {"project_id": project, "name": "alts"}
    made = {"created_at": now, "updated_at": now}
    seal = api.seal
    api.run("network", networks=[{"name": "alts", "cidr": "10.30.0.0/24", "bridge": "br130"}], project="alt")
    (net,) = api.rows(sa.select(tables.network).where(tables.network.c.name == "alts"))
    assert net.owner == project
    with transaction(api.engine) as connection:
        application = credentials.create_application_credential(
            connection, user_id=user, project_id=project, name="alts", secret_hash="x", roles=["member"]
        )
        ec2 = credentials.create_ec2_credential(connection, seal, user, project)
        kept_fields = {"type": "cert", "user_id": user, "project_id": None, "blob": "x"}
        kept_credential = kept_credentials.create_credential(connection, seal, kept_fields)
        rule_fields = {"service": "compute", "method": "GET", "path": "/v2.1/servers"}
        (access_rule,) = access_rules.record_access_rules(connection, user, [rule_fields])
        trust = trusts.create_trust(
            connection,
            trustor_user_id=user,
            trustee_user_id=api.users["reader"],
            project_id=project,
            roles=["member"],
            impersonation=True,
        )
        volume_types.ensure_default(connection)
        of_type = volume_type_records.DEFAULT_ID
    server = api.instance("alt", "alts", "hv1", [(net, "10.30.0.254")], user_id=user)
    ((vif,),) = api.rows(sa.select(tables.vif.c.id).where(tables.vif.c.instance_uuid == server))
    request = f"req-{uuid.uuid4()}"
    group, rule, image, grouped, floating, job = (str(uuid.uuid4()) for _ in range(6))
    kept, taken, hung, router = (str(uuid.uuid4()) for _ in range(4))
    ended = {"started_at": now, "finished_at": now, "user_id": user, "project_id": project, "request_id": request}
    api.insert(tables.instance_action, instance_uuid=server, action="create", details={}, **ended)
    by_playbook = {**ended, "user_id": None, "request_id": f"req-{uuid.uuid4()}", "started_at": now - 60}
    run = 900000
    api.insert(tables.instance_action, id=run, instance_uuid=server, action="stop", details={}, **by_playbook)
    number = api.insert(tables.security_group, uuid=group, **owned)
    ssh = {"ethertype": "IPv4", "protocol": "tcp", "port_min": 22, "port_max": 22, "cidr": "0.0.0.0/0"}
    api.insert(tables.security_group_rule, id=rule, group_id=number, **ssh)
    api.insert(tables.image, **an_image("alts", id=image, owner=project), created_at=now)
    api.insert(tables.keypair, public_key=PUBLIC_KEY, fingerprint="0" * 47, created_at=now, **owned)
    api.insert(tables.server_group, id=grouped, policy="anti-affinity", **owned)
    api.insert(tables.floating_pool, name="public", cidr="198.51.100.0/24", interface="eth0")
    address = int.from_bytes(bytes([198, 51, 100, 7]))
    api.insert(tables.floating_ip, id=floating, pool="public", address=address, project_id=project, released_at=0)
    api.insert(
        tables.tables_jobs.job,
        id=job,
        kind="reboot",
        project_id=project,
        user_id=api.users["alt"],
        request_id=request,
        variables={"uuids": [server]},
        state="succeeded",
        timeout_seconds=60,
        created_at=now,
        started_at=now,
        finished_at=now,
    )
    data = {"size_gb": 1, "metadata": {}, **owned, **made}
    disk = {"type_id": of_type, "format": "qcow2", "status": "in-use", "made_at": now, "user_id": user}
    api.insert(tables_volumes.volume, id=kept, **disk, **data)
    api.insert(tables_volumes.volume_snapshot, id=taken, volume_id=kept, status="available", **data)
    saved = str(uuid.uuid4())
    of_volume = {"volume_id": kept, "status": "available", "incremental": False, **data}
    api.insert(tables_volumes.volume_backup, id=saved, **of_volume)
    left = str(uuid.uuid4())  # of a server that is gone
    of_server: dict[str, t.Any] = {
        "instance_uuid": str(uuid.uuid4()),
        "server": "gone",
        "host": "hv1",
        "kind": "full",
        "disks": [{"name": "vda", "size": 1 << 30, "kind": "full", "reason": "first"}],
    }
    of_server |= {"project_id": project, "name": "left", "status": "available", "gigabytes": 1, "flavor": {}}
    api.insert(tables_images.server_backup, id=left, **of_server, created_at=now, updated_at=now)
    there = {"instance_uuid": server, "device": "vdb", "created_at": now, "attached_at": now}
    api.insert(tables_volumes.volume_attachment, id=hung, volume_id=kept, **there)
    transferred_volume, offered = (str(uuid.uuid4()) for _ in range(2))
    api.insert(
        tables_volumes.volume, id=transferred_volume, **{**disk, **data, "name": "given", "status": "awaiting-transfer"}
    )
    offer = {"project_id": project, "key_hash": "0" * 64, "created_at": now}
    api.insert(tables_volumes.volume_transfer, id=offered, volume_id=transferred_volume, **offer)
    api.insert(tables.tables_networking.router, id=router, **owned, **made)
    scope, drawn = (str(uuid.uuid4()) for _ in range(2))
    api.insert(tables.tables_networking.address_scope, id=scope, ip_version=4, **owned)
    lengths = {"min_prefixlen": 8, "default_prefixlen": 24, "max_prefixlen": 32}
    data = {"ip_version": 4, "prefixes": ["10.64.0.0/16"], "address_scope_id": scope, **lengths}
    api.insert(tables.tables_networking.subnet_pool, id=drawn, **data, **owned, **made)
    subnets = api.client_as("alt").get("/network/v2.0/subnets").get_json() or {}
    ours = [subnet["id"] for subnet in subnets.get("subnets", []) if subnet["network_id"] == net.uuid]
    return Objects(
        {
            "project": project,
            "user": user,
            "application_credential": application["id"],
            "ec2_credential": ec2["access"],
            "kept_credential": kept_credential["id"],
            "access_rule": access_rule["id"],
            "trust": trust["id"],
            "server": server,
            "request": request,
            "port": vif,
            "keypair": "alts",
            "server_group": grouped,
            "security_group": group,
            "security_group_rule": rule,
            "floating_ip": floating,
            "network": net.uuid,
            "subnet": (ours or [str(uuid.uuid4())])[0],
            "image": image,
            "job": job,
            "run": str(run),
            "router": router,
            "address_scope": scope,
            "subnet_pool": drawn,
            "nothing": str(uuid.uuid4()),
            "volume": kept,
            "volume_snapshot": taken,
            "volume_backup": saved,
            "server_backup": left,
            "volume_transfer": offered,
            "volume_attachment": hung,
        }
    )


def paths(rule: Rule, objects: Objects, project: str) -> t.Iterator[tuple[list[str], tuple[str, ...]]]:
    """Three paths of a rule, with ids of `alt`, of nobody, and so within `project`; and the kinds of the objects.

    For each of the words that a variable may be.
    """
    texts = [rule.rule]
    for name, converter in rule._converters.items():
        if isinstance(converter, AnyConverter):
            texts = [re.sub(rf"<[^<>]*\b{name}>", word, text) for text in texts for word in sorted(converter.items)]
    for text in texts:
        made: list[list[str]] = [[""], [""], [""]]
        kinds = []
        parts = text.split("/")[1:]
        for position, part in enumerate(parts):
            variable = VARIABLE.fullmatch(part)
            if variable is None:
                for path in made:
                    path.append(part)
                continue
            where = (parts[0], made[0][position] if position else parts[0])
            if where in OWNED:
                kind = OWNED[where]
                kinds.append(kind)
                made[0].append(objects.id(kind))
                made[1].append(objects.nobodys(kind))
                made[2].append(project if kind == "project" else made[1][-1])
            elif where in SHARED:
                for path in made:
                    path.append(SHARED[where])
            elif position >= 2 and parts[position - 1].startswith("<"):
                for path in made:
                    path.append(ACTIONS.get(parts[0], "nosuch"))  # what is done to the object before it
            else:
                pytest.fail(
                    f"{rule.rule}: what is <{variable[1]}>? Tell tests/api/foreign.py: OWNED (and make one in make()) "
                    f"or SHARED, under {where}"
                )
        yield ["/".join(path) for path in made], tuple(kinds)
