# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of each operation that has several doors, one request at each."""

from __future__ import annotations

import dataclasses
import typing as t

from api.openstack.identity.views import role_id
from tests.api.seeds import PUBLIC_KEY


@dataclasses.dataclass(frozen=True)
class Http:
    """A request of OpenStack's services or of /v1. In `path` and `body`, `{kind}` is the id of one of alt's,
    `{spare_user}` that of a user of the caller's project whom nobody misses."""

    method: str
    path: str
    body: t.Any = None


@dataclasses.dataclass(frozen=True)
class Page:
    """A page, or a form of it."""

    method: str
    path: str


@dataclasses.dataclass(frozen=True)
class Ec2:
    action: str
    parameters: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)


Request = Http | Page | Ec2


def job(kind: str, **variables: t.Any) -> Http:
    return Http("POST", "/v1/jobs", {"kind": kind, "instances": ["{server}"], "variables": variables})


def action(name: str, value: t.Any = None) -> Http:
    return Http("POST", "/compute/v2.1/servers/{server}/action", {name: value})


INSTANCE = {"InstanceId": "{ec2_server}"}
INSTANCES = {"InstanceIds": ["{ec2_server}"]}
NEW_CONSOLE = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
NEW_SERVER = {"name": "new", "imageRef": "6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11", "flavorRef": "1", "networks": "auto"}
GROUP = {"name": "new", "description": ""}

# Of each operation that has several doors, one request at each. None of them carries anything out: no worker runs.
OPERATIONS_BY_DOOR: dict[str, tuple[Request, ...]] = {
    "compute:flavors:read": (Http("GET", "/compute/v2.1/flavors"), Ec2("describe_instance_types")),
    "compute:hypervisors:read": (
        Http("GET", "/compute/v2.1/os-hypervisors"),
        Http("GET", "/v1/hosts"),
        Page("GET", "/hosts"),
    ),
    "compute:interfaces:write": (
        Http("POST", "/compute/v2.1/servers/{server}/os-interface", {"interfaceAttachment": {}}),
        job("interface_attach"),
    ),
    "compute:keypairs:read": (
        Http("GET", "/compute/v2.1/os-keypairs"),
        Ec2("describe_key_pairs"),
        Page("GET", "/keys"),
    ),
    "compute:keypairs:write": (
        Http("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "new", "public_key": PUBLIC_KEY}}),
        Ec2("import_key_pair", {"KeyName": "new", "PublicKeyMaterial": PUBLIC_KEY}),
        Page("POST", "/keys/import"),
        Page("POST", "/keys/generate"),
    ),
    "compute:limits": (Http("GET", "/compute/v2.1/limits"), Ec2("describe_account_attributes")),
    "compute:quotas:read": (Http("GET", "/compute/v2.1/os-quota-sets/{own_project}"), Page("GET", "/quotas")),
    "compute:quotas:write": (
        Http("PUT", "/compute/v2.1/os-quota-sets/{own_project}", {"quota_set": {"instances": 20}}),
        Page("POST", "/projects/{own_project}/quotas"),
    ),
    "compute:server-metadata:read": (Http("GET", "/compute/v2.1/servers/{server}/metadata"), Ec2("describe_tags")),
    "compute:server-metadata:write": (
        Http("POST", "/compute/v2.1/servers/{server}/metadata", {"metadata": {"a": "b"}}),
        Ec2("create_tags", {"Resources": ["{ec2_server}"], "Tags": [{"Key": "a", "Value": "b"}]}),
    ),
    "compute:server-parts:read": (
        Http("GET", "/compute/v2.1/servers/{server}/ips"),
        Ec2("get_password_data", INSTANCE),
    ),
    "compute:server-volumes:write": (
        Http(
            "POST",
            "/compute/v2.1/servers/{server}/os-volume_attachments",
            {"volumeAttachment": {"volumeId": "{volume}"}},
        ),
        Ec2("attach_volume", {"VolumeId": "{ec2_volume}", **INSTANCE, "Device": "/dev/vdc"}),
    ),
    "compute:server-backups:read": (Http("GET", "/v1/instances/{server}/backups"), Page("GET", "/backups")),
    "compute:server-backups:restore": (
        Http("POST", "/v1/backups/{server_backup}/volumes", {"disk": "vda"}),
        job("restoreBackup", backup="{server_backup}"),
    ),
    "compute:server-replicas:read": (Http("GET", "/v1/replicas"),),
    "compute:server-replicas:write": (
        Http("PUT", "/v1/instances/{server}/replica", {"every": "5m"}),
        Http("DELETE", "/v1/instances/{server}/replica"),
        Page("GET", "/instances/{server}/replica"),
        Page("POST", "/instances/{server}/replica"),
        job("replicate"),
    ),
    "compute:server-consoles": (
        Http("POST", "/compute/v2.1/servers/{server}/remote-consoles", NEW_CONSOLE),
        Page("POST", "/instances/{server}/consoles/novnc"),
        Http("POST", "/v1/instances/{server}/console", {"type": "novnc"}),
    ),
    "compute:servers:action": (action("os-stop"), Page("POST", "/instances/{server}/stop")),
    "compute:servers:change_password": (action("changePassword", {"adminPass": "secret-1"}), job("changePassword")),
    "compute:servers:confirm_resize": (action("confirmResize"), job("confirmResize")),
    "compute:servers:console_output": (
        action("os-getConsoleOutput", {"length": 0}),
        job("console"),
        Page("GET", "/instances/{server}/console"),
        Page("POST", "/instances/{server}/console"),
        Ec2("get_console_output", {"InstanceId": "{ec2_idle}"}),
    ),
    "compute:servers:create": (
        Http("POST", "/compute/v2.1/servers", {"server": NEW_SERVER}),
        Http("POST", "/v1/jobs", {"kind": "launch", "variables": {"servers": [{"name": "new"}]}}),
        Ec2("run_instances", {"ImageId": "ami-6a6f9a8a5f434f4e9", "MinCount": 1, "MaxCount": 1}),
        Page("GET", "/instances/launch"),
        Page("POST", "/instances/launch/now"),
    ),
    "compute:servers:create_image": (
        action("createImage", {"name": "new"}),
        job("createImage", image_name="new"),
        Ec2("create_image", {**INSTANCE, "Name": "new"}),
        action("createBackup", {"name": "new", "backup_type": "daily", "rotation": 1}),
    ),
    "compute:servers:delete": (
        Http("DELETE", "/compute/v2.1/servers/{server}"),
        Page("POST", "/instances/{server}/delete"),
        # by names, which mean something in the caller's project only: whoever has none of them does nothing
        Http(
            "POST", "/v1/jobs", {"kind": "terminate", "variables": {"servers": [{"name": "alts"}]}, "check_mode": True}
        ),
        Ec2("terminate_instances", INSTANCES),
    ),
    "compute:servers:detail": (Http("GET", "/compute/v2.1/servers/detail"), Ec2("describe_instances")),
    "compute:servers:evacuate": (action("evacuate", {}), job("evacuate")),
    "compute:servers:ha": (
        Http("PATCH", "/v1/instances/{server}/ha", {"ha_priority": 1}),
        Page("GET", "/instances/{server}/ha"),
        Page("POST", "/instances/{server}/ha"),
    ),
    "compute:servers:index": (Http("GET", "/compute/v2.1/servers"), Page("GET", "/instances")),
    "compute:servers:live_migrate": (
        action("os-migrateLive", {"host": None, "block_migration": "auto"}),
        job("live-migration"),
    ),
    "compute:servers:migrate": (action("migrate"), job("migrate")),
    "compute:servers:pause": (action("pause"), job("pause")),
    "compute:servers:placement": (
        Http("GET", "/v1/instances/{server}/placement"),
        Page("GET", "/instances/{server}/placement"),
        Page("GET", "/instances/{server}/launch.svg"),
    ),
    "compute:servers:plan": (
        Http("POST", "/v1/plan", {"servers": [{"name": "new", "flavor": "m1.nano", "image": "ami-tiny"}]}),
        Http("POST", "/v1/jobs", {"kind": "plan", "variables": {"servers": [{"name": "new"}]}}),
        Page("POST", "/instances/launch"),
    ),
    "compute:servers:reboot": (
        action("reboot", {"type": "HARD"}),
        job("reboot", type="HARD"),
        Ec2("reboot_instances", INSTANCES),
    ),
    "compute:servers:rebuild": (
        action("rebuild", {"imageRef": "6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11"}),
        job("rebuild"),
    ),
    "compute:servers:rescue": (action("rescue"), job("rescue")),
    "compute:servers:resize": (
        action("resize", {"flavorRef": "2"}),
        job("resize", flavor="m1.small"),
        job("live-resize", flavor="m1.small"),
    ),
    "compute:servers:resume": (action("resume"), job("resume")),
    "compute:servers:revert_resize": (action("revertResize"), job("revertResize")),
    "compute:servers:shelve": (action("shelve"), job("shelve")),
    "compute:servers:shelve_offload": (action("shelveOffload"), job("shelveOffload")),
    "compute:servers:show": (
        Http("GET", "/compute/v2.1/servers/{server}"),
        Http("GET", "/v1/instances/{server}/ha"),
        Page("GET", "/instances/{server}"),
        Ec2("describe_instance_attribute", {**INSTANCE, "Attribute": "instanceType"}),
    ),
    "compute:servers:start": (action("os-start"), job("start"), Ec2("start_instances", INSTANCES)),
    "compute:servers:stop": (action("os-stop"), job("stop"), Ec2("stop_instances", INSTANCES)),
    "compute:servers:suspend": (action("suspend"), job("suspend")),
    "compute:servers:unpause": (action("unpause"), job("unpause")),
    "compute:servers:unrescue": (action("unrescue"), job("unrescue")),
    "compute:servers:unshelve": (action("unshelve"), job("unshelve")),
    "compute:servers:update": (
        Http("PUT", "/compute/v2.1/servers/{server}", {"server": {"name": "alts"}}),
        Ec2("modify_instance_attribute", {**INSTANCE, "DisableApiTermination": {"Value": False}}),
    ),
    "compute:zones:read": (Http("GET", "/compute/v2.1/os-availability-zone"), Ec2("describe_availability_zones")),
    "identity:assignments:create": (
        Http("PUT", f"/identity/v3/projects/{{own_project}}/users/{{spare_user}}/roles/{role_id('member')}"),
        Page("POST", "/users/{user}/grant"),
    ),
    "identity:assignments:delete": (
        Http("DELETE", f"/identity/v3/projects/{{own_project}}/users/{{spare_user}}/roles/{role_id('reader')}"),
        Page("POST", "/users/{user}/revoke"),
    ),
    "identity:projects:create": (
        Http("POST", "/identity/v3/projects", {"project": {"name": ""}}),
        Page("POST", "/projects/new"),
    ),
    "identity:projects:delete": (
        Http("DELETE", "/identity/v3/projects/{own_project}"),
        Page("POST", "/projects/{own_project}/delete"),
    ),
    "identity:projects:list": (Http("GET", "/identity/v3/projects"), Page("GET", "/projects")),
    "identity:projects:update": (
        Http("PATCH", "/identity/v3/projects/{own_project}", {"project": {"description": "new"}}),
        Page("POST", "/projects/{own_project}/change"),
    ),
    "identity:users:create": (
        Http("POST", "/identity/v3/users", {"user": {"name": "new", "default_project_id": "nosuch"}}),
        Page("POST", "/users/new"),
    ),
    "identity:users:delete": (Http("DELETE", "/identity/v3/users/{spare_user}"), Page("GET", "/users/{user}/delete")),
    "identity:users:list": (Http("GET", "/identity/v3/users"), Page("GET", "/users")),
    "identity:users:update": (
        Http("PATCH", "/identity/v3/users/{user}", {"user": {"email": "x@example.org"}}),
        Page("GET", "/users/{user}/change"),
    ),
    "image:read": (
        Http("GET", "/compute/v2.1/images/{image}"),
        Http("GET", "/image/v2/images/{image}"),
        Ec2("describe_images", {"ImageIds": ["{ec2_image}"]}),
        Page("GET", "/images"),
    ),
    "image:write": (
        Http("POST", "/compute/v2.1/images/{image}/metadata", {"metadata": {"a": "b"}}),
        Http("PATCH", "/image/v2/images/{image}", [{"op": "replace", "path": "/name", "value": "alts"}]),
        Ec2(
            "modify_image_attribute",
            {"ImageId": "{ec2_image}", "Attribute": "description", "Description": {"Value": "x"}},
        ),
    ),
    "jobs:change": (Http("POST", "/v1/jobs/{job}/retry"), Page("POST", "/jobs/{job}/retry")),
    "jobs:read": (Http("GET", "/v1/jobs/{job}"), Page("GET", "/jobs/{job}"), Page("GET", "/runs/{run}")),
    "network:floating_ips:read": (
        Http("GET", "/compute/v2.1/os-floating-ips/{floating_ip}"),
        Http("GET", "/network/v2.0/floatingips/{floating_ip}"),
        Ec2("describe_addresses", {"AllocationIds": ["{ec2_floating_ip}"]}),
        Page("GET", "/floating-ips"),
    ),
    "network:floating_ips:write": (
        action("addFloatingIp", {"address": "198.51.100.7"}),
        Http("PUT", "/network/v2.0/floatingips/{floating_ip}", {"floatingip": {"description": "x"}}),
        Http("POST", "/v1/jobs", {"kind": "floating_ips", "variables": {"pool": "public"}}),
        Ec2("associate_address", {"AllocationId": "{ec2_floating_ip}", **INSTANCE}),
        Page("POST", "/floating-ips/new"),
        Page("POST", "/floating-ips/{floating_ip}/associate"),
        Page("GET", "/floating-ips/{floating_ip}/release"),
    ),
    "network:ports:read": (
        Http("GET", "/network/v2.0/ports/{port}"),
        Ec2("describe_network_interfaces", {"NetworkInterfaceIds": ["{ec2_port}"]}),
    ),
    "network:ports:write": (
        action("addFixedIp", {"networkId": "{network}"}),
        Http("PUT", "/network/v2.0/ports/{port}", {"port": {"description": "x"}}),
        Ec2("assign_private_ip_addresses", {"NetworkInterfaceId": "{ec2_port}", "SecondaryPrivateIpAddressCount": 1}),
    ),
    "network:read": (
        Http("GET", "/compute/v2.1/os-networks/{network}"),
        Http("GET", "/network/v2.0/networks/{network}"),
        Page("GET", "/networks/{network}"),
        Ec2("describe_subnets", {"SubnetIds": ["{ec2_network}"]}),
    ),
    "network:routers:read": (Http("GET", "/network/v2.0/routers"), Ec2("describe_route_tables")),
    "network:security_groups:read": (
        Http("GET", "/compute/v2.1/os-security-groups/{security_group}"),
        Http("GET", "/network/v2.0/security-groups/{security_group}"),
        Ec2("describe_security_groups", {"GroupIds": ["{ec2_security_group}"]}),
        Page("GET", "/security-groups"),
    ),
    "network:security_groups:write": (
        Http("PUT", "/compute/v2.1/os-security-groups/{security_group}", {"security_group": GROUP}),
        Http("PUT", "/network/v2.0/security-groups/{security_group}", {"security_group": {"description": "x"}}),
        Http("POST", "/v1/jobs", {"kind": "security_groups", "variables": {"security_groups": [{"name": "new"}]}}),
        Ec2(
            "authorize_security_group_ingress",
            {
                "GroupId": "{ec2_security_group}",
                "IpProtocol": "tcp",
                "FromPort": 22,
                "ToPort": 22,
                "CidrIp": "0.0.0.0/0",
            },
        ),
        Page("POST", "/security-groups/new"),
        Page("POST", "/security-groups/{security_group}/add-rule"),
        Page("GET", "/security-groups/{security_group}/delete"),
    ),
    "network:write": (
        Http("POST", "/network/v2.0/networks", {"network": {"admin_state_up": False, "router:external": False}}),
        Page("POST", "/networks/new"),
        Page("GET", "/networks/{network}/delete"),
    ),
    "volume:read": (
        Http("GET", "/compute/v2.1/os-volumes/{volume}"),
        Http("GET", "/volume/v3/{own_project}/volumes/{volume}"),
        Ec2("describe_volumes", {"VolumeIds": ["{ec2_volume}"]}),
        Page("GET", "/volumes"),
    ),
    "volume:write": (
        Http("DELETE", "/compute/v2.1/os-volumes/{volume}"),
        Http("PUT", "/volume/v3/{own_project}/volumes/{volume}", {"volume": {"description": "x"}}),
        Ec2("modify_volume", {"VolumeId": "{ec2_volume}", "Size": 2}),
        Page("POST", "/volumes/new"),
        Page("POST", "/volumes/{volume}/extend"),
        Page("GET", "/volumes/{volume}/delete"),
    ),
}
