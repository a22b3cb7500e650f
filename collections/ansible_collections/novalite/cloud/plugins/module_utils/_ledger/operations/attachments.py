# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations that give servers interfaces and volumes, or take them away, for every door."""

from __future__ import annotations

import typing as t

from ..._model.rows import InstanceRow
from ..compute import interfaces
from ..compute.interfaces import InterfaceRequest
from ..network import network_choices
from ..queries.compute.state_rules import RULES
from ..queries.volumes.volume_views import Attachment
from ..volumes import volume_attachments
from .call import OVERRIDE_LOCK, Call


def check_attach_interface(call: Call, row: InstanceRow) -> None:
    """Raise ConflictError unless the server may get an interface now."""
    interfaces.check(call.connection, "attach_interface", row, call.permits(OVERRIDE_LOCK))


def interface_in(
    call: Call, row: InstanceRow, *, uuid: str | None = None, name: str | None = None, fixed_ip: str | None = None
) -> InterfaceRequest:
    """Return the request for an interface in a network of this UUID or name, at an address (None: any). Raises
    NotFoundError, and ForbiddenError for an address that the caller may not choose."""
    of_network = interfaces.network_named(call.connection, row.project_id, uuid=uuid, name=name)
    choice = {"fixed_ips:ip_address": fixed_ip}
    may_choose = call.permits("network:ports:choose")
    network_choices.check(of_network.uuid, of_network.owner, row.project_id, choice, may_choose)
    return InterfaceRequest(of_network, fixed_ip=fixed_ip)


def attach_interface(call: Call, row: InstanceRow, request: InterfaceRequest) -> tuple[str, str]:
    """Begin to give the server an interface; return the port's id and the job's. Raises as interfaces.begin_attach(),
    and ForbiddenError."""
    call.check(RULES["attach_interface"].policy)
    port_id = interfaces.begin_attach(call.connection, row, request, **call.asker)
    return port_id, call.enqueue("interface_attach", [row.uuid], row.project_id)


def detach_interface(call: Call, row: InstanceRow, port_id: str) -> None:
    """Begin to take an interface from the server. Raises as interfaces.begin_detach(), and ForbiddenError."""
    call.check(RULES["detach_interface"].policy)
    interfaces.begin_detach(call.connection, row, port_id, **call.asker)
    call.enqueue("interface_detach", [row.uuid], row.project_id)


class Options(t.TypedDict, total=False):
    """Options of volume_attachments.begin_attach()."""

    device: str | None
    tag: str | None
    delete_on_termination: bool
    readonly: bool


def update_volume(call: Call, attachment_id: str, *, delete_on_termination: bool) -> None:
    """Have an attached volume go with its server, or stay."""
    call.check("compute:server-volumes:write")
    volume_attachments.update_attachment(call.connection, attachment_id, delete_on_termination=delete_on_termination)


def attach_volume(
    call: Call, volume_id: str, server_uuid: str, *, project_id: str | None, **options: t.Unpack[Options]
) -> Attachment:
    """Begin to give a volume to a server, both of this project (None: of any). Raises as
    volume_attachments.begin_attach()."""
    call.check(RULES["attach_volume"].policy)
    made = volume_attachments.begin_attach(
        call.connection, volume_id, server_uuid, project_id=project_id, **options, **call.asker
    )
    _have_done(call, "volume_attach", made, project_id)
    return made


def detach_volume(
    call: Call, volume_id: str, server_uuid: str | None = None, *, project_id: str | None = None, force: bool = False
) -> Attachment:
    """Begin to take a volume from a server (None: the only one). Raises as volume_attachments.begin_detach(), and
    ForbiddenError."""
    call.check(RULES["detach_volume"].policy)
    if force:
        call.check("volume:admin")
    gone = volume_attachments.begin_detach(
        call.connection, volume_id, server_uuid, project_id=project_id, force=force, **call.asker
    )
    _have_done(call, "volume_detach", gone, project_id)
    return gone


def _have_done(call: Call, kind: str, attachment: Attachment, project_id: str | None) -> None:
    """Have the server's host attach or detach a volume. A server that is on no host has nothing to be done there."""
    if attachment.host is not None:
        call.enqueue(kind, [attachment.instance_uuid], project_id, {"attachments": [attachment.id]})
