# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks at backups, their proofs and policies, and copies on second hosts, as `looking` has those at all else."""

from __future__ import annotations

from .looking import Record, open_ledger


def proof_of(backup: str) -> tuple[str, str | None] | None:
    """Return what is kept of the last boot of the backup with this id: its console, and its screen, PNG in base64."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import server_backup_rows

    with open_ledger() as connection:
        return server_backup_rows.proof_of(connection, backup)


def backup_ages(project: str | None) -> list[Record]:
    """List when the newest backup of each server (of a project; None: of all) was taken, found whole, and booted."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.backup_ages import ages

    with open_ledger() as connection:
        owner = None if project is None else lookups.project_by_name(connection, project)["id"]
        return [
            {
                **{"server": each.name, "uuid": each.uuid, "policy": each.policy and each.policy.name},
                **{name: getattr(each, name) or None for name in ("newest", "whole", "proven")},
            }
            for each in ages(connection, owner, everyone=True)
        ]


def backup_policies() -> list[Record]:
    """Return the policies of backups by name, as they are shown."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import backup_policies as policies
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import by_playbook

    with open_ledger() as connection:
        return policies.listed(by_playbook(connection))


def replicas(project: str | None) -> list[Record]:
    """List the copies of servers' disks on second hosts (of a project; None: of all)."""
    import dataclasses

    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import replica_records

    with open_ledger() as connection:
        owner = None if project is None else lookups.project_by_name(connection, project)["id"]
        return [dataclasses.asdict(each) for each in replica_records.replicas_by(connection, project_id=owner)]
