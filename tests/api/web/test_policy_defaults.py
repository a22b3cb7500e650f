# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles that operations take, as the policies of OpenStack's services have them, written down once more: another
test that read them from the table would say yes to whatever stands there."""

from __future__ import annotations

from api.web.policy import POLICY

# Policies of Keystone, Nova, Glance, Neutron and Cinder that say rule:admin_api, role:admin, or what only their
# administrators may; and the work on hosts, which is the operator's
ADMINS = {
    "identity:domains": {"create", "update", "delete", "others"},
    "identity:roles": {"create", "update", "delete"},
    "identity:groups": {"list", "show", "create", "update", "delete", "members", "add_member", "remove_member"},
    "identity:projects": {"list", "create", "update", "delete", "others"},
    "identity:project_tags": {"write"},
    "identity:assignments": {"list", "check", "create", "delete"},
    "identity:users": {"list", "create", "update", "delete", "others"},
    "identity": {"tokens:others", "credentials:others", "trusts:others"},
    "compute:servers:create": {"forced_host", "host_attributes", "private"},
    "compute:servers": {
        *("placement", "unshelve_to_host", "shelve_offload", "migrate_to", "evacuate", "reset_state", "reset_network"),
        *("all_tenants", "deleted", "extended", "override_lock"),
    },
    "compute": {"server-diagnostics", "server_groups:all_projects", "limits:other_project"},
    "compute:migrations": {"read", "change"},
    "compute:flavors": {"write", "private"},
    "compute:quotas": {"write"},
    "compute:server-replicas": {"write"},
    "compute:usage": {"read_all"},
    "compute:hypervisors": {"read", "details", "samples"},
    "compute:hosts": {"read", "write", "evacuate"},
    "compute:aggregates": {"read", "write"},
    "compute:old-hosts": {"read", "write"},
    "image": {"give", "host_mount", "publicize", "tasks", "all_projects", "download_deactivated"},
    "network": {"operate", "provider_attributes", "security_groups:all_projects", "agents:list"},
    "network:create": {"shared", "other_project"},
    "network:ports": {"binding", "choose"},
    "network:routers": {"enable_snat", "external_fixed_ips", "any_network"},
    "network:floating_ips": {"choose"},
    "network:quotas": {"list", "update"},
    "network:ip_availability": {"read"},
    "volume": {"admin", "all_tenants", "any_filter", "host_attributes", "limits:other_project", "private_types"},
    "jobs:read": {"all_projects", "texts"},
    "jobs": {"choose_hosts", "choose_timeout", "unknown_kinds"},
    "cloud": {"carry_out_volumes", "compute_nodes", "firewall", "reconcile", "image_cache", "overview:behind"}
    | {"ha:read", "ha:write", "backup_policies"},
}
# Nova's role:manager since 2025.1
MANAGERS = {"compute:servers:migrate", "compute:servers:live_migrate", "compute:keypairs:manage"}
# What a reader may besides what is called :read
LOOKS = {
    *("compute:servers:index", "compute:servers:detail", "compute:servers:show", "compute:servers:samples"),
    *("compute:limits", "cloud:overview"),
}


def operations(role: str) -> set[str]:
    return {operation for operation, takes in POLICY.items() if takes == role}


def test_what_is_an_administrators_takes_one() -> None:
    assert operations("admin") == {f"{room}:{name}" for room, names in ADMINS.items() for name in names}


def test_what_is_a_managers_takes_one() -> None:
    assert operations("manager") == MANAGERS


def test_readers_only_look() -> None:
    assert {operation for operation in operations("reader") if not operation.endswith(":read")} == LOOKS


def test_nobody_without_a_role_does_anything_but_with_what_is_their_own() -> None:
    rooms = {operation.partition(":")[0] for operation in operations("any")}
    assert rooms == {"identity", "ec2", "pages"}
    assert operations("any") & {"ec2:signed", "pages:logout"} == {
        operation for operation in operations("any") if not operation.startswith("identity:")
    }
