# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration of the suites: accounts, and for Tempest its settings and where its tests are."""

from __future__ import annotations

import configparser
import json
import os
import pathlib
import secrets
import subprocess
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import ENABLED_FILTERS
from tests.clients.cloud import ROOT, Cloud

WORKERS = 2
FLAVOR, FLAVOR_ALT = "m1.nano", "m1.micro"
IMAGE, IMAGE_ALT = "ami-tiny", "disk-tiny"
NETWORK, FLOATING = "private", "public"
VOLUME_TYPE = "shared"  # its volumes follow their servers from host to host
GUEST = 600  # seconds that a guest under emulation may take to be there, or to answer
# What Tempest's commands begin with: in a guest with busybox some of the tools that they call have other names
PROLOGUE = (
    "set -eu; PATH=$PATH:/sbin:/usr/sbin; "
    'sudo() { "$@"; }; '
    # of a CD, whose label is 8 letters at 32808
    "blkid() { for device in /sys/block/vd*; do device=/dev/${device##*/}; "
    'if [ "$(dd if=$device bs=8 skip=4101 count=1 2>/dev/null)" = "$2" ]; then echo "$device"; fi; done; }; '
    'lsblk() { echo "NAME TYPE"; for device in /sys/block/vd*; do echo "${device##*/}  disk"; done; };'
)

Account = dict[str, t.Any]


def accounts(workspace: pathlib.Path) -> list[Account]:
    """The users that Tempest takes by turns, made at the first use. Its `alt` is whoever comes first and is free."""
    kept = workspace / "accounts.json"
    if not kept.exists():
        made = [_account(f"tempest-alt-{number}", None, "member") for number in range(2 * WORKERS)]
        for number in range(2 * WORKERS):
            project = f"tempest-{number}"
            made += [
                _account(project, project, "member"),
                _account(f"{project}-manager", project, "manager"),
                _account(f"{project}-reader", project, "reader"),
            ]
        made += [_account(f"tempest-admin-{number}", None, "admin") for number in range(2 * WORKERS)]
        kept.touch(mode=0o600)
        kept.write_text(json.dumps(made))
    return t.cast(list[Account], json.loads(kept.read_text()))


def _account(user: str, project: str | None, role: str) -> Account:
    # a project of its own is called as the user
    return {"user": user, "password": secrets.token_urlsafe(24), "project": project or user, "role": role}


def record(running: Cloud, workspace: pathlib.Path, users: list[Account]) -> None:
    """Have `users` and what else the suites need in the ledger."""
    variables = workspace / "variables.json"
    variables.touch(mode=0o600)
    variables.write_text(
        json.dumps(
            {
                "novalite_projects": [{"name": name} for name in sorted({each["project"] for each in users})],
                "novalite_users": [
                    {
                        "name": each["user"],
                        "password": each["password"],
                        "default_project": each["project"],
                        "roles": [{"project": each["project"], "role": each["role"]}],
                    }
                    for each in users
                ],
            }
        )
    )
    inventory = os.environ.get("NOVALITE_INVENTORY") or str(ROOT / "inventories/lab")
    done = subprocess.run(
        ["ansible-playbook", "-i", inventory, "-e", f"@{variables}", "tests/conformance/accounts.yml"],
        cwd=ROOT,
        env={**os.environ, "NOVALITE_HOME": str(running.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the accounts were not recorded:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def write(running: Cloud, workspace: pathlib.Path, tempest: pathlib.Path, ssh: bool = True) -> None:
    """Write all files that Tempest reads. `tempest`: the directory of its package. `ssh`: it logs in to guests."""
    (workspace / "accounts.yaml").touch(mode=0o600)
    (workspace / "accounts.yaml").write_text(
        json.dumps(  # which is YAML, too
            [
                {
                    "username": each["user"],
                    "password": each["password"],
                    "project_name": each["project"],
                    "user_domain_name": "Default",
                    "project_domain_name": "Default",
                    "roles": [each["role"]],
                    "resources": {"network": NETWORK},
                }
                for each in accounts(workspace)
            ],
            indent=1,
        )
    )
    (workspace / ".stestr.conf").write_text(
        f"[DEFAULT]\ntest_path={tempest}/test_discover\ntop_dir={tempest.parent}\ngroup_regex=([^\\.]*\\.)*\n"
    )
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_dict(_settings(running, workspace, ssh))
    with (workspace / "tempest.conf").open("w") as file:
        settings.write(file)


def _settings(running: Cloud, workspace: pathlib.Path, ssh: bool) -> dict[str, dict[str, t.Any]]:
    admin = running.connect("openrc-admin")
    flavors = {each.name: each.id for each in admin.compute.flavors()}
    images = {each.name: each.id for each in admin.image.images()}
    for name in (IMAGE, IMAGE_ALT):  # their kernels know no other disks
        admin.image.update_image(images[name], hw_cdrom_bus="virtio")
    networks = {each.name: each.id for each in admin.network.networks()}
    compute, volume = admin.compute.get_endpoint_data(), admin.block_storage.get_endpoint_data()
    operator = next(each for each in accounts(workspace) if each["role"] == "admin")
    return {
        "DEFAULT": {"log_file": workspace / "tempest.log", "debug": True},
        "oslo_concurrency": {"lock_path": workspace / "locks"},
        "auth": {
            "use_dynamic_credentials": False,
            "test_accounts_file": workspace / "accounts.yaml",
            "default_credentials_domain_name": "Default",
            # for the classes that want users and projects of their own
            "admin_username": operator["user"],
            "admin_password": operator["password"],
            "admin_project_name": operator["project"],
            "admin_domain_name": "Default",
        },
        "identity": {
            "uri_v3": running.environment("openrc-admin")["OS_AUTH_URL"],
            "v3_endpoint_type": "public",
            "auth_version": "v3",
            "region": "RegionOne",
            "user_unique_last_password_count": 0,  # a password may come back
        },
        "identity-feature-enabled": {
            "api_v2": False,
            "api_v2_admin": False,
            "trust": True,
            "access_rules": True,
            "domain_specific_drivers": False,
            "security_compliance": True,
        },
        "service_available": {
            "nova": True,
            "neutron": True,
            "glance": True,
            "cinder": True,
            "swift": False,
            "horizon": False,
        },
        "compute": {
            "image_ref": images[IMAGE],
            "image_ref_alt": images[IMAGE_ALT],
            "flavor_ref": flavors[FLAVOR],
            "flavor_ref_alt": flavors[FLAVOR_ALT],
            "fixed_network_name": NETWORK,
            "build_timeout": GUEST,
            "build_interval": 2,
            "min_compute_nodes": 2,
            "hypervisor_type": "QEMU",
            **_microversions(compute),
        },
        "compute-feature-enabled": {
            "resize": True,
            "shelve": True,
            "shelve_migrate": True,
            "change_password": False,
            "block_migration_for_live_migration": True,
            "attach_encrypted_volume": False,
            "swap_volume": False,
            "volume_multiattach": False,
            "vnc_console": False,
            "metadata_service": False,  # the lab's guests have what they need on their disks, or on a config drive
            "personality": False,
            "ide_bus": False,
            # as Nova calls them
            "scheduler_enabled_filters": ",".join(f"{name.title().replace('_', '')}Filter" for name in ENABLED_FILTERS),
        },
        # what a host could start must be what it was said to be; the rest is taken as it comes, and listed first
        "image": {"disk_formats": "raw,ami,ari,aki,vhd,vmdk,vdi,iso,qcow2"},
        "image-feature-enabled": {"import_image": True, "image_format_enforcement": False},
        # else all that Neutron has ever had
        "network-feature-enabled": {
            "api_extensions": ",".join(sorted(each.alias for each in admin.network.extensions())),
            "ipv6_subnet_attributes": True,
        },
        "network": {"public_network_id": networks[FLOATING], "floating_network_name": FLOATING},
        "validation": {
            "run_validation": ssh,
            "connect_method": "floating",
            "image_ssh_user": "root",
            "image_alt_ssh_user": "root",
            "ssh_key_type": "ecdsa",
            "ping_timeout": GUEST,
            "ssh_timeout": GUEST,
            "ssh_shell_prologue": PROLOGUE.replace("$", "$$"),  # its default asks for bash
        },
        "volume": {
            "build_timeout": GUEST,
            "volume_size": 1,
            "volume_type": VOLUME_TYPE,
            "vendor_name": "novalite",
            **_microversions(volume),
        },
        "volume-feature-enabled": {
            "backup": False,
            "extend_attached_volume": True,
            "manage_volume": False,
            "manage_snapshot": False,
        },
    }


def _microversions(endpoint: t.Any) -> dict[str, str]:
    least, most = endpoint.min_microversion, endpoint.max_microversion
    if not most:
        return {}
    return {"min_microversion": ".".join(map(str, least)), "max_microversion": ".".join(map(str, most))}
