# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations, and who may do them: one table for all doors (OpenStack's services, EC2, /v1, the status page).

A door names the operation that a request is; it has no rules of its own. "public": anybody. "any": whoever has a valid
token. Else the role that it takes in the token's project: the default of Nova's, Neutron's, Glance's, Cinder's or
Keystone's policy where one of them has the operation.
"""

from __future__ import annotations

import typing as t

OPERATIONS: t.Mapping[str, str] = {
    # the API itself
    "version": "public",
    "health": "public",
    "metrics": "public",
    "v1:openapi": "public",
    "pages:files": "public",
    "pages:login": "public",
    "pages:console": "public",  # whoever has a token, which names who asked for it
    "pages:logout": "any",
    "ec2:signed": "any",  # each of EC2's actions is an operation of those below
    # identity
    "identity:versions": "public",
    "identity:tokens:create": "public",
    "identity:tokens:show": "any",
    "identity:tokens:delete": "any",
    "identity:tokens:others": "admin",  # tokens of other users
    "identity:auth:catalog": "any",
    "identity:auth:projects": "any",
    "identity:auth:domains": "any",
    "identity:regions": "any",
    "identity:services": "any",
    "identity:endpoints": "any",
    "identity:domains:read": "any",  # one's own, and those of one's projects
    "identity:domains:others": "admin",
    "identity:domains:create": "admin",
    "identity:domains:update": "admin",
    "identity:domains:delete": "admin",
    "identity:roles": "any",
    "identity:roles:create": "admin",
    "identity:roles:update": "admin",
    "identity:roles:delete": "admin",
    "identity:groups:list": "admin",
    "identity:groups:show": "admin",
    "identity:groups:create": "admin",
    "identity:groups:update": "admin",
    "identity:groups:delete": "admin",
    "identity:groups:members": "admin",
    "identity:groups:add_member": "admin",
    "identity:groups:remove_member": "admin",
    # one's own
    "identity:credentials:list": "any",
    "identity:credentials:show": "any",
    "identity:credentials:create": "any",
    "identity:credentials:update": "any",
    "identity:credentials:delete": "any",
    "identity:credentials:others": "admin",  # whatever is done with credentials of other users
    "identity:trusts:list": "any",
    "identity:trusts:show": "any",
    "identity:trusts:create": "any",
    "identity:trusts:delete": "any",
    "identity:trusts:others": "admin",  # list, show and delete those between other users
    "identity:access_rules:list": "any",
    "identity:access_rules:show": "any",
    "identity:access_rules:delete": "any",
    "identity:application_credentials:list": "any",
    "identity:application_credentials:show": "any",
    "identity:application_credentials:create": "any",
    "identity:application_credentials:delete": "any",
    "identity:ec2_credentials:list": "any",
    "identity:ec2_credentials:show": "any",
    "identity:ec2_credentials:create": "any",
    "identity:ec2_credentials:delete": "any",
    # as Keystone: clients that are refused ask for their own, or take a name that was given to them for an id
    "identity:projects:list": "admin",
    "identity:projects:show": "any",
    "identity:projects:create": "admin",
    "identity:projects:update": "admin",
    "identity:projects:delete": "admin",
    "identity:projects:others": "admin",  # show projects in which the user has no role
    "identity:project_tags:read": "any",
    "identity:project_tags:write": "admin",
    "identity:assignments:list": "admin",
    "identity:assignments:check": "admin",
    "identity:assignments:create": "admin",
    "identity:assignments:delete": "admin",
    "identity:users:list": "admin",
    "identity:users:show": "any",
    "identity:users:projects": "any",
    "identity:users:groups": "any",
    "identity:users:others": "admin",  # show other users, their projects and groups
    "identity:users:create": "admin",
    "identity:users:update": "admin",
    "identity:users:delete": "admin",
    "identity:users:password": "public",  # with the old password, as in Keystone
    # servers
    "compute:servers:index": "reader",
    "compute:servers:detail": "reader",
    "compute:servers:show": "reader",
    "compute:servers:create": "member",
    "compute:servers:create:forced_host": "admin",
    "compute:servers:create:host_attributes": "admin",  # which tenants do not see; Nova has JsonFilter off
    "compute:servers:create:private": "admin",  # flavors, volume types and addresses kept from the project
    "compute:servers:plan": "member",
    "compute:servers:placement": "admin",  # it names hosts, and what is left on them
    "compute:servers:samples": "reader",  # what the guest uses of its host, as its graphs show it
    "compute:servers:all_tenants": "admin",
    "compute:servers:deleted": "admin",
    "compute:servers:extended": "admin",  # show, sort and filter by what Nova calls extended: hosts, user data
    "compute:servers:override_lock": "admin",
    "compute:servers:update": "member",
    "compute:servers:delete": "member",
    "compute:servers:action": "member",  # whichever of those that follow; each has its own rule beside this
    "compute:servers:start": "member",
    "compute:servers:stop": "member",
    "compute:servers:reboot": "member",
    "compute:servers:pause": "member",
    "compute:servers:unpause": "member",
    "compute:servers:suspend": "member",
    "compute:servers:resume": "member",
    "compute:servers:lock": "member",
    "compute:servers:unlock": "member",
    "compute:servers:rescue": "member",
    "compute:servers:cdrom": "member",
    "compute:servers:ha": "member",  # as a new server's
    "compute:servers:unrescue": "member",
    "compute:servers:rebuild": "member",
    "compute:servers:create_image": "member",
    "compute:servers:shelve": "member",
    "compute:servers:unshelve": "member",
    "compute:servers:unshelve_to_host": "admin",
    "compute:servers:shelve_offload": "admin",
    "compute:servers:change_password": "member",
    "compute:servers:console_output": "member",  # guests print passwords and keys there
    "compute:servers:resize": "member",
    "compute:servers:confirm_resize": "member",
    "compute:servers:revert_resize": "member",
    "compute:servers:migrate": "manager",  # to wherever there is room
    "compute:servers:live_migrate": "manager",
    "compute:servers:migrate_to": "admin",  # to a host of one's choice
    "compute:servers:evacuate": "admin",  # a second copy of a guest whose host is only silent is data loss
    "compute:servers:security_groups": "member",  # which of the project's a server is in
    "compute:servers:reset_state": "admin",
    "compute:servers:reset_network": "admin",
    "compute:server-consoles": "member",
    "compute:server-diagnostics": "admin",
    "compute:server-backups:read": "reader",
    "compute:server-backups:restore": "member",
    "compute:server-backups:write": "member",
    "compute:server-replicas:read": "reader",
    "compute:server-replicas:write": "admin",
    "compute:server-metadata:read": "reader",
    "compute:server-metadata:write": "member",
    "compute:server-parts:read": "reader",
    "compute:server-parts:write": "member",
    "compute:server-snapshots:read": "reader",
    "compute:server-snapshots:write": "member",
    "compute:server-tags:read": "reader",
    "compute:server-tags:write": "member",
    "compute:server-volumes:read": "reader",
    "compute:server-volumes:write": "member",
    "compute:interfaces:read": "reader",
    "compute:interfaces:write": "member",
    "compute:migrations:read": "admin",
    "compute:migrations:change": "admin",
    "compute:server_groups:read": "reader",
    "compute:server_groups:all_projects": "admin",
    "compute:server_groups:write": "member",
    "compute:keypairs:read": "reader",
    "compute:keypairs:write": "member",
    "compute:keypairs:manage": "manager",  # remove those of others, and those of playbooks
    # what the cloud offers
    "compute:flavors:read": "reader",
    "compute:flavors:private": "admin",  # those of other projects
    "compute:flavors:write": "admin",
    "compute:extensions:read": "reader",
    "compute:zones:read": "reader",
    "compute:limits": "reader",
    "compute:limits:other_project": "admin",
    "compute:quotas:read": "reader",
    "compute:quotas:write": "admin",
    "compute:usage:read": "reader",
    "compute:usage:read_all": "admin",
    # hosts: who they are, and what is left on them, is no tenant's business
    "compute:hypervisors:read": "admin",
    "compute:hypervisors:details": "admin",  # facts, and reasons
    "compute:hypervisors:samples": "admin",
    "compute:hosts:read": "admin",
    "compute:hosts:write": "admin",
    "compute:hosts:evacuate": "admin",
    "compute:aggregates:read": "admin",
    "compute:aggregates:write": "admin",
    "compute:old-hosts:read": "admin",
    "compute:old-hosts:write": "admin",
    # images
    "image:read": "reader",
    "image:write": "member",
    "image:give": "admin",
    "image:all_projects": "admin",
    "image:download_deactivated": "admin",
    "image:host_mount": "admin",
    "image:publicize": "admin",
    "image:tasks": "admin",
    "image:members:read": "reader",
    "image:members:write": "member",
    # networks
    "network:read": "reader",
    "network:write": "member",
    "network:operate": "admin",
    "network:provider_attributes": "admin",
    "network:create:shared": "admin",
    "network:create:other_project": "admin",
    "network:subnet_pools:read": "reader",
    "network:subnet_pools:write": "member",
    "network:ports:read": "reader",
    "network:ports:write": "member",
    "network:ports:binding": "admin",  # where ports are, and to say so
    "network:ports:choose": "admin",  # addresses, MACs and port security on a network of another project
    "network:routers:read": "reader",
    "network:routers:write": "member",
    "network:routers:enable_snat": "admin",
    "network:routers:external_fixed_ips": "admin",
    "network:routers:any_network": "admin",  # a leg on a network of another project
    "network:floating_ips:read": "reader",
    "network:floating_ips:write": "member",
    "network:floating_ips:choose": "admin",  # Neutron's create_floatingip:floating_ip_address
    "network:security_groups:read": "reader",
    "network:security_groups:all_projects": "admin",
    "network:security_groups:write": "member",
    "network:tags:read": "reader",
    "network:tags:write": "member",
    "network:quotas:list": "admin",
    "network:quotas:update": "admin",
    "network:agents:read": "reader",
    "network:agents:list": "admin",  # others get an empty list
    "network:ip_availability:read": "admin",
    # volumes
    "volume:read": "reader",
    "volume:write": "member",
    "volume:all_tenants": "admin",
    "volume:any_filter": "admin",
    "volume:host_attributes": "admin",
    "volume:limits:other_project": "admin",
    "volume:private_types": "admin",
    "volume:admin": "admin",
    # jobs, and what an operator does with all of the cloud
    "jobs:read": "reader",
    "jobs:read:all_projects": "admin",
    "jobs:read:texts": "admin",  # what tasks said on hosts
    "jobs:create": "member",  # whichever kind; each is an operation of its own
    "jobs:change": "member",  # likewise
    "jobs:choose_hosts": "admin",
    "jobs:choose_timeout": "admin",
    "jobs:unknown_kinds": "admin",  # end or repeat those of an older version
    "cloud:overview": "reader",
    "cloud:overview:behind": "admin",  # the reason why the ledger is behind its hosts
    "cloud:backup_policies": "admin",
    "cloud:carry_out_volumes": "admin",  # by hand; the volumes were marked by an operation of theirs
    "cloud:compute_nodes": "admin",
    "cloud:ha:read": "admin",  # which hosts are silent, and what can prove their death
    "cloud:ha:write": "admin",
    "cloud:firewall": "admin",
    "cloud:reconcile": "admin",
    "cloud:image_cache": "admin",
}
