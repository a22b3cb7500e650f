# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""States in which an operation on a server may be asked for: one table, and one function that every door asks.

The vm_states and the lock are those of Nova's check_instance_state and check_instance_lock, the protections EC2's. Who
may ask at all says the entry of the same operation in api/web/operations.py.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import ProtectedError, StateError
from ...._model.rows import InstanceRow
from ...._rules.build_states import DELETING, OFFLOADED, SHELVED
from ...db.tables_ec2 import ec2_instance

Protection = t.Literal["disable_api_termination", "disable_api_stop"]  # columns of ec2_instance
_ATTRIBUTES: t.Mapping[Protection, str] = {
    "disable_api_termination": "disableApiTermination",
    "disable_api_stop": "disableApiStop",
}


@dataclasses.dataclass(frozen=True)
class StateRule:
    """States of a server that allow `operation`, by Nova's name of it. `policy` is its entry among the operations.

    An operation that has `vm_states` also needs a host, unless the server was offloaded from its host, and nothing else
    under way. None stands for any state, any task and no host.
    """

    operation: str
    policy: str
    vm_states: frozenset[str] | None = None
    lock: bool = True  # a lock counts; an administrator passes it
    protection: Protection | None = None  # counts for everybody, as at Amazon: take the protection off first
    adopted: bool = False  # allowed on an adopted server, whose guest others made
    deleting: bool = True  # allowed on one that is being deleted, if any task is


def _rule(operation: str, policy: str, *vm_states: str, **more: t.Any) -> StateRule:
    return StateRule(operation, policy, frozenset(vm_states), **more)


def _action(operation: str, *vm_states: str, policy: str = "", **more: t.Any) -> StateRule:
    return _rule(operation, f"compute:servers:{policy or operation}", *vm_states, **more)


_STOP: t.Final = "disable_api_stop"
_WITH_DISKS = ("active", "stopped", "paused", "suspended")
_REMAKES = ("active", "stopped", "error")

# An adopted server's domain is started and stopped as it is defined; its disks, definition and devices are not ours.
_ROWS = (
    _action("stop", "active", "error", "rescued", protection=_STOP, adopted=True),
    _action("start", "stopped", adopted=True),
    _action("reboot", "active", adopted=True),
    _action("pause", "active", protection=_STOP, adopted=True),
    _action("unpause", "paused", adopted=True),
    _action("suspend", "active", protection=_STOP, adopted=True),
    _action("resume", "suspended", adopted=True),
    _action("rescue", *_REMAKES),
    _action("unrescue", "rescued"),
    _action("rebuild", *_REMAKES),
    _action("createImage", *_WITH_DISKS, policy="create_image"),
    _rule("createSnapshot", "compute:server-snapshots:write", *_WITH_DISKS),
    _rule("revertSnapshot", "compute:server-snapshots:write", *_REMAKES),
    _rule("deleteSnapshot", "compute:server-snapshots:write", *_WITH_DISKS, "rescued", "error"),
    _rule("createBackup", "compute:server-backups:write", *_WITH_DISKS),
    _rule("restoreBackup", "compute:server-backups:restore", *_REMAKES),
    _rule("verifyBackup", "compute:server-backups:write", *_WITH_DISKS, "rescued", "error"),
    _rule("deleteBackup", "compute:server-backups:write", *_WITH_DISKS, "rescued", "error"),
    _rule("replicate", "compute:server-replicas:write", *_WITH_DISKS, lock=False),
    _action("resize", "active", "stopped"),
    _action("live-resize", "active", policy="resize"),
    _action("migrate", "active", "stopped"),
    _action("confirmResize", "resized", policy="confirm_resize"),
    _action("revertResize", "resized", policy="revert_resize"),
    _action("live-migration", "active", "paused", policy="live_migrate"),
    _action("evacuate", *_REMAKES),
    _action("shelve", *_WITH_DISKS, protection=_STOP),
    _action("shelveOffload", SHELVED, policy="shelve_offload"),
    _action("unshelve", SHELVED, OFFLOADED),
    _action("changePassword", "active", policy="change_password"),
    _rule("attach_interface", "compute:interfaces:write", "active", "paused", "stopped"),
    _rule("detach_interface", "compute:interfaces:write", "active", "paused", "stopped"),
    _rule("attach_volume", "compute:server-volumes:write", *_WITH_DISKS, "resized", OFFLOADED),
    _rule("detach_volume", "compute:server-volumes:write", *_WITH_DISKS, "resized", OFFLOADED),
    _rule("change_cdrom", "compute:servers:cdrom", "active", "paused", "stopped"),
    # Neutron knows no lock of servers; Nova's addFixedIp does
    _rule("update_port", "network:ports:write", "active", "paused", "stopped", lock=False),
    StateRule("change_fixed_ips", "network:ports:write"),
    StateRule("give a floating IP to", "network:floating_ips:write", lock=False, deleting=False),
    StateRule("change_security_groups", "compute:servers:security_groups"),
    StateRule("delete", "compute:servers:delete", protection="disable_api_termination"),
    StateRule("change_metadata", "compute:server-metadata:write", adopted=True),
    # what is to become of a guest when its host dies: one of others nobody can build anew
    StateRule("change_ha", "compute:servers:ha", deleting=False),
    StateRule("change_tags", "compute:server-tags:write", adopted=True),
    StateRule("update", "compute:servers:update", lock=False, adopted=True),
    StateRule("lock", "compute:servers:lock", lock=False, adopted=True),
    StateRule("unlock", "compute:servers:unlock", lock=False, adopted=True),
    StateRule("reset_state", "compute:servers:reset_state", lock=False, adopted=True),
    StateRule("reset_network", "compute:servers:reset_network", lock=False, adopted=True),
)
RULES: t.Mapping[str, StateRule] = {row.operation: row for row in _ROWS}
HARD_REBOOT = _action("reboot", *_WITH_DISKS, "error", adopted=True)


class State(t.NamedTuple):
    """State of a server, as far as it decides."""

    uuid: str
    name: str
    vm_state: str
    task_state: str | None
    host: str | None
    locked: bool
    adopted: bool


def state_of(row: InstanceRow) -> State:
    """Return the state in a row of the table `instance`."""
    return State(row.uuid, row.name, row.vm_state, row.task_state, row.host, bool(row.locked), row.adopted is not None)


def refusal(
    rule: StateRule, server: State, *, by_admin: bool = False, also_in: t.Collection[str] = ()
) -> StateError | None:
    """Return the error, in Nova's words, of a server whose state does not allow the operation; None if it does."""
    cannot = f"Cannot '{rule.operation}' instance {server.uuid}"

    def error(reason: str, message: str) -> StateError:
        return StateError(message, operation=rule.operation, state=server.vm_state, reason=reason)

    if rule.lock and server.locked and not by_admin:
        return error("locked", f"Instance {server.uuid} is locked")
    at_rest = server.task_state is None or (rule.vm_states is None and (rule.deleting or server.task_state != DELETING))
    if not at_rest:
        return error("busy", f"{cannot} while it is in task_state {server.task_state}")
    if rule.vm_states is not None:
        if server.vm_state not in rule.vm_states and server.vm_state not in also_in:
            return error("state", f"{cannot} while it is in vm_state {server.vm_state}")
        if server.host is None and server.vm_state != OFFLOADED:  # its build failed: there is no guest
            return error("no host", f"Instance {server.uuid} is not ready")
    if server.adopted and not rule.adopted:
        return error(
            "adopted",
            f"{cannot} ('{server.name}'): it was adopted, and its disks, definition and devices are not novalite's; "
            "release it first (release.yml)",
        )
    return None


def check(
    connection: sa.Connection,
    rule: StateRule,
    rows: t.Sequence[InstanceRow],
    *,
    by_admin: bool = False,
    also_in: t.Collection[str] = (),
) -> None:
    """Raise StateError for the first of these servers whose state does not allow the operation, ProtectedError for one
    that EC2's attributes protect from it. `by_admin`: an administrator asks. `also_in` are vm_states of repairs."""
    for row in rows:
        if (error := refusal(rule, state_of(row), by_admin=by_admin, also_in=also_in)) is not None:
            raise error
    if rule.protection is None:
        return
    column = ec2_instance.c[rule.protection]
    query = sa.select(ec2_instance.c.instance_uuid).where(
        ec2_instance.c.instance_uuid.in_([row.uuid for row in rows]), column
    )
    protected = set(connection.execute(query).scalars())
    for row in rows:
        if row.uuid in protected:
            raise ProtectedError(
                f"Cannot '{rule.operation}' instance {row.uuid}: it is protected from that. Set its EC2 attribute "
                f"{_ATTRIBUTES[rule.protection]} to false (ModifyInstanceAttribute), and try again.",
                operation=rule.operation,
                state=row.vm_state,
                reason="protected",
            )
