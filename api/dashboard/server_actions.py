# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on a server: one table of them, each with its rule of states, its entry of the policy, what it
asks for, and the operation that does it."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, StateError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import (
    attachments,
    server_backups,
    server_snapshots,
    servers,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import OVERRIDE_LOCK, Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import floating_ips
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import image_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import (
    SeenFlavor,
    flavors_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import images_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing, state_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.state_rules import RULES, StateRule
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import flavor_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Flavor
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ..web.errors import BadRequestError
from ..work.images import offered as offered_images
from ..work.networks import floating_ip

Choice = tuple[str, str]  # what is sent, what is shown
Do = t.Callable[[Call, InstanceRow, str], None]


@dataclasses.dataclass(frozen=True)
class Sight:
    """A server that its caller looks at, with what several choices are made of, which is read once."""

    call: Call
    row: InstanceRow

    @functools.cached_property
    def record(self) -> server_listing.Record:
        (record,) = server_listing.load(self.call.connection, [self.row.id])
        return record

    @functools.cached_property
    def ports(self) -> list[network_records.Port]:
        return network_records.interfaces_of(self.call.connection, self.row.project_id, self.row.uuid)

    @functools.cached_property
    def floating_ips(self) -> list[network_records.FloatingIp]:
        return network_records.floating_ips_of(self.call.connection, self.row.project_id)

    @functools.cached_property
    def flavors(self) -> list[SeenFlavor]:
        private = self.call.permits("compute:flavors:private")
        return flavors_seen(self.call.connection, private, self.row.project_id)

    @property
    def groups(self) -> list[str]:
        return sorted(self.record["security_groups"])


Options = t.Callable[[Sight], t.Sequence[Choice]]


def any_text(_sight: Sight) -> t.Sequence[Choice]:
    """Offer no choice: a text of one's own is asked for."""
    return ()


@dataclasses.dataclass(frozen=True)
class ServerAction:
    """An action: what its button says, the rule of states (with the entry of the policy) that it is held to, and the
    function that does it with the one value that it asks for: `options` to choose from, or a text."""

    label: str
    rule: StateRule
    do: Do
    asks: str = ""  # the label of what is asked for
    options: Options | None = None
    optional: str = ""  # what is shown for no choice, where there may be none
    also: str = ""  # a further entry of the policy that it takes
    fits: t.Callable[[InstanceRow], bool] = lambda _row: True
    first: bool = False  # among the buttons that are always seen

    @property
    def entries(self) -> tuple[str, ...]:
        """Entries of the policy that it takes."""
        return ("compute:servers:action", self.rule.policy, *([self.also] if self.also else []))


class Offered(t.NamedTuple):
    """An action that may be done to a server now, with what there is to choose from."""

    name: str
    action: ServerAction
    choices: t.Sequence[Choice]

    @property
    def is_text(self) -> bool:
        return self.action.options is any_text


def offered(call: Call, row: InstanceRow) -> list[Offered]:
    """Return the actions that the caller may do to the server as it is now."""
    open_actions = []
    sight = Sight(call, row)
    for name, action in ACTIONS.items():
        if not may(call, action) or not action.fits(row) or not _state_allows(call, action, row):
            continue
        choices = action.options(sight) if action.options is not None else ()
        if action.options in (None, any_text) or choices or action.optional:
            open_actions.append(Offered(name, action, choices))
    return open_actions


def may(call: Call, action: ServerAction) -> bool:
    """Tell whether the policy lets the caller do it to any server."""
    return all(call.permits(entry) for entry in action.entries)


def do(call: Call, row: InstanceRow, name: str, value: str) -> None:
    """Do the action `name` (of ACTIONS) with `value`. Raises as its operation, and BadRequestError for a value that is
    not among those to choose from."""
    action = ACTIONS[name]
    for entry in action.entries:
        call.check(entry)
    if action.options is any_text:
        if not value:
            raise BadRequestError(f"{action.label}: give its name")
    elif (
        action.options is not None
        and (value or not action.optional)
        and value not in dict(action.options(Sight(call, row)))
    ):
        raise BadRequestError(f"{action.label}: '{value[:60]}' cannot be chosen for this server any more")
    action.do(call, row, value)


def _state_allows(call: Call, action: ServerAction, row: InstanceRow) -> bool:
    try:
        state_rules.check(call.connection, action.rule, [row], by_admin=call.permits(OVERRIDE_LOCK))
    except StateError:
        return False
    return True


# --- What is done ---------------------------------------------------------------------------------------------------


def _plain(name: str) -> Do:
    return lambda call, row, _value: _of(servers.begin(call, name, [row.uuid]))


def _reboot(kind: str) -> Do:
    details = {"type": kind}
    return lambda call, row, _value: _of(servers.begin(call, "reboot", [row.uuid], details, details))


def _move(name: str) -> Do:
    return lambda call, row, value: _of(servers.move(call, name, [row.uuid], host=value or None))


def _of(_begun: object) -> None:
    """Have nothing of what an operation returns: the page shows the server as it is then."""


def _lock(locked: bool) -> Do:
    return lambda call, row, _value: _of(servers.set_lock(call, row.uuid, locked))


def _shelve(call: Call, row: InstanceRow, _value: str) -> None:
    servers.begin(call, "shelve", [row.uuid], {"user_id": call.user_id})


def _unshelve(call: Call, row: InstanceRow, _value: str) -> None:
    servers.begin(call, "unshelve", [row.uuid], {})


def _rescue(call: Call, row: InstanceRow, value: str) -> None:
    servers.rescue(call, row, value or None, None)


def _rebuild(call: Call, row: InstanceRow, value: str) -> None:
    image = lookups.image_by_id(call.connection, value, row.project_id)
    servers.rebuild(call, row, {"image": image, "reimage": True})


def _create_image(call: Call, row: InstanceRow, value: str) -> None:
    servers.create_image(call, row, image_views.details_of(value, None, call.user_id))


def _create_snapshot(call: Call, row: InstanceRow, value: str) -> None:
    server_snapshots.create(call, row, {"snapshot": value})


def _roll_back(call: Call, row: InstanceRow, value: str) -> None:
    server_snapshots.revert(call, row, value)


def _delete_snapshot(call: Call, row: InstanceRow, value: str) -> None:
    server_snapshots.delete(call, row, value)


def _create_backup(call: Call, row: InstanceRow, _value: str) -> None:
    server_backups.create(call, row, {})


def _restore_backup(call: Call, row: InstanceRow, value: str) -> None:
    server_backups.restore(call, row, value)


def _verify_backup(call: Call, row: InstanceRow, value: str) -> None:
    server_backups.verify(call, row, value)


def _delete_backup(call: Call, row: InstanceRow, value: str) -> None:
    server_backups.delete(call, row, value)


def _resize(call: Call, row: InstanceRow, value: str) -> None:
    servers.move(call, "resize", [row.uuid], flavor=_flavor(call, row, value))


def _resize_live(call: Call, row: InstanceRow, value: str) -> None:
    servers.resize_live(call, [row.uuid], _flavor(call, row, value))


def _flavor(call: Call, row: InstanceRow, value: str) -> Flavor:
    flavor = lookups.flavor_by_id(call.connection, value, call.permits("compute:flavors:private"), row.project_id)
    return flavor_of(flavor)


def _attach_volume(call: Call, row: InstanceRow, value: str) -> None:
    attachments.attach_volume(call, value, row.uuid, project_id=row.project_id)


def _detach_volume(call: Call, row: InstanceRow, value: str) -> None:
    attachments.detach_volume(call, value, row.uuid, project_id=row.project_id)


def _change_group(joins: bool) -> Do:
    return lambda call, row, value: servers.change_group(call, row, value, joins=joins)


def _give_floating_ip(call: Call, row: InstanceRow, value: str) -> None:
    port = next((port for port in Sight(call, row).ports if port.ip is not None), None)
    if port is None:
        raise NotFoundError(f"Instance {row.uuid} has no address that a floating IP could lead to.")
    floating_ips.associate(call, floating_ip(call.connection, value), port)


def _take_floating_ip(call: Call, _row: InstanceRow, value: str) -> None:
    floating_ips.associate(call, floating_ip(call.connection, value), None)


# --- What there is to choose from -----------------------------------------------------------------------------------


def _flavors(sight: Sight) -> list[Choice]:
    own = sight.record["flavor"]["name"]
    return [(flavor["flavorid"], flavor["name"]) for flavor in sight.flavors if flavor["name"] != own]


def _live_flavors(sight: Sight) -> list[Choice]:
    own, flavors = sight.record["flavor"], map(flavor_of, sight.flavors)
    fitting = servers.live_flavors(sight.call, sight.row.host, own, flavors)
    return [(flavor["flavorid"], flavor["name"]) for flavor in fitting]


def _images(sight: Sight) -> list[Choice]:
    project_id = sight.row.project_id
    images = offered_images(images_seen(sight.call.connection, project_id), project_id)
    return sorted((image["id"], image["name"] or image["id"]) for image in images if image["status"] == "active")


def _hosts(sight: Sight) -> list[Choice]:
    if not sight.call.permits("compute:servers:migrate_to"):
        return []
    names = sorted(lookups.compute_host_names(sight.call.connection), key=natural)
    return [(name, name) for name in names if name != sight.row.host]


def _free_volumes(sight: Sight) -> list[Choice]:
    volumes = volume_views.volumes_by(sight.call.connection, project_id=sight.row.project_id, statuses=["available"])
    return [_volume(volume) for volume in volumes]


def _own_volumes(sight: Sight) -> list[Choice]:
    volumes = volume_views.volumes_by(sight.call.connection, instances=[sight.row.uuid])
    root = volume_views.root_volume(sight.call.connection, sight.row.uuid)
    return [_volume(volume) for volume in volumes if root is None or volume.id != root.id]


def _own_snapshots(sight: Sight) -> list[Choice]:
    listed = server_snapshots.listed(sight.call, sight.row)
    return [(snapshot.id, f"{snapshot.name} ({snapshot.consistency or snapshot.status})") for snapshot in listed]


def _own_backups(sight: Sight) -> list[Choice]:
    return _all_backups(sight, whole=True)


def _all_backups(sight: Sight, whole: bool = False) -> list[Choice]:
    """The backups of the server, the newest first; those that failed, too, unless they are to be `whole`."""
    listed = server_backups.listed(sight.call, sight.row)
    listed = [backup for backup in listed if backup.status == "available" or not whole]
    return [(backup.id, f"{backup.name} ({backup.kind or backup.status})") for backup in reversed(listed)]


def _volume(volume: volume_views.Volume) -> Choice:
    return volume.id, f"{volume.display_name or volume.name} ({volume.size_gb} GiB)"


def _own_groups(sight: Sight) -> list[Choice]:
    return [(name, name) for name in sight.groups]


def _other_groups(sight: Sight) -> list[Choice]:
    names = (group["name"] for group in groups_of(sight.call.connection, sight.row.project_id))
    return [(name, name) for name in sorted(names) if name not in sight.groups]


def _free_floating_ips(sight: Sight) -> list[Choice]:
    if not any(port.ip is not None for port in sight.ports):
        return []
    return [(each.id, f"{each.address} ({each.pool_name})") for each in sight.floating_ips if each.vif_id is None]


def _own_floating_ips(sight: Sight) -> list[Choice]:
    return [(each.id, each.address) for each in sight.floating_ips if each.instance_uuid == sight.row.uuid]


FLOATING = RULES["give a floating IP to"]
ACTIONS: dict[str, ServerAction] = {
    "start": ServerAction("Start", servers.rule_of("start"), _plain("start"), first=True),
    "stop": ServerAction("Stop", servers.rule_of("stop"), _plain("stop"), first=True),
    "reboot": ServerAction("Reboot", servers.rule_of("reboot"), _reboot("SOFT"), first=True),
    "hard-reboot": ServerAction("Hard reboot", state_rules.HARD_REBOOT, _reboot("HARD"), first=True),
    "unrescue": ServerAction("End the rescue", RULES["unrescue"], _plain("unrescue"), first=True),
    "confirm-resize": ServerAction("Keep the new size", RULES["confirmResize"], _move("confirmResize"), first=True),
    "revert-resize": ServerAction("Back to the old size", RULES["revertResize"], _move("revertResize"), first=True),
    "unshelve": ServerAction("Unshelve", RULES["unshelve"], _unshelve, first=True),
    "unpause": ServerAction("Unpause", RULES["unpause"], _plain("unpause"), first=True),
    "resume": ServerAction("Resume", RULES["resume"], _plain("resume"), first=True),
    "pause": ServerAction("Pause", RULES["pause"], _plain("pause")),
    "suspend": ServerAction("Suspend", RULES["suspend"], _plain("suspend")),
    "shelve": ServerAction("Shelve", RULES["shelve"], _shelve),
    "shelve-offload": ServerAction("Take off its host", RULES["shelveOffload"], _plain("shelveOffload")),
    "lock": ServerAction("Lock", RULES["lock"], _lock(True), fits=lambda row: not row.locked),
    "unlock": ServerAction("Unlock", RULES["unlock"], _lock(False), fits=lambda row: bool(row.locked)),
    "snapshot": ServerAction("Take a snapshot", RULES["createImage"], _create_image, "Name of the image", any_text),
    "server-snapshot": ServerAction(
        "Keep all disks", RULES["createSnapshot"], _create_snapshot, "Name of the snapshot", any_text
    ),
    "rollback": ServerAction("Roll back", RULES["revertSnapshot"], _roll_back, "Snapshot", _own_snapshots),
    "delete-snapshot": ServerAction(
        "Delete a snapshot", RULES["deleteSnapshot"], _delete_snapshot, "Snapshot", _own_snapshots
    ),
    "backup": ServerAction("Back up", RULES["createBackup"], _create_backup),
    "restore-backup": ServerAction("Restore a backup", RULES["restoreBackup"], _restore_backup, "Backup", _own_backups),
    "verify-backup": ServerAction("Verify a backup", RULES["verifyBackup"], _verify_backup, "Backup", _own_backups),
    "delete-backup": ServerAction("Delete a backup", RULES["deleteBackup"], _delete_backup, "Backup", _all_backups),
    "resize": ServerAction("Resize", RULES["resize"], _resize, "Flavor", _flavors),
    "live-resize": ServerAction("Resize while it runs", RULES["live-resize"], _resize_live, "Flavor", _live_flavors),
    "rescue": ServerAction("Rescue", RULES["rescue"], _rescue, "Image", _images, "Its own"),
    "rebuild": ServerAction("Rebuild", RULES["rebuild"], _rebuild, "Image of its new disk", _images),
    "migrate": ServerAction("Migrate, switched off", RULES["migrate"], _move("migrate"), "To", _hosts, "Any host"),
    "live-migrate": ServerAction(
        "Migrate while it runs", RULES["live-migration"], _move("live-migration"), "To", _hosts, "Any host"
    ),
    "attach-volume": ServerAction("Attach a volume", RULES["attach_volume"], _attach_volume, "Volume", _free_volumes),
    "detach-volume": ServerAction("Detach a volume", RULES["detach_volume"], _detach_volume, "Volume", _own_volumes),
    "join-group": ServerAction(
        "Join a group", RULES["change_security_groups"], _change_group(True), "Security group", _other_groups
    ),
    "leave-group": ServerAction(
        "Leave a group", RULES["change_security_groups"], _change_group(False), "Security group", _own_groups
    ),
    "give-address": ServerAction("Give a floating IP", FLOATING, _give_floating_ip, "Address", _free_floating_ips),
    "take-address": ServerAction("Take a floating IP", FLOATING, _take_floating_ip, "Address", _own_floating_ips),
}
