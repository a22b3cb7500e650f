#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ledger
short_description: Back up, restore, export and migrate the ledger
version_added: 0.1.0
description:
  - Copies the ledger while it is in use, brings a copy back, writes it as text, and moves it to another revision.
  - Text is the same for SQLite and PostgreSQL. A ledger moves from one to the other by V(export) and V(restore).
  - Secrets are in copies as they are in the ledger, hashed or encrypted, and so is the key that they are encrypted
    under. Copies have mode 0600.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  operation:
    description:
      - V(info) tells the ledger's revision, and which dated copies there are.
      - V(backup) copies the ledger, to a dated file in C(ledger-copies) below O(home), or to O(file). The copy is an
        SQLite file, or text if the ledger is in PostgreSQL.
      - V(export) writes the ledger as text to O(file). A file that holds it already is left alone.
      - V(restore) replaces the ledger by what a backup or an export wrote, whichever database it came from, and
        migrates it to the newest revision. All of it happens in one transaction. A ledger that has hosts is behind
        them from then on, and refuses changes until the step V(ledger_rebuild) has asked them.
      - V(migrate) brings the ledger to O(revision), forth or back. A dated copy is kept. The next use of the ledger
        migrates it to the newest revision that the installed novalite knows, so go back right before the older
        novalite is installed.
    type: str
    choices: [info, backup, export, restore, migrate]
    default: info
  file:
    description:
      - The file of O(operation=backup), O(operation=export) or O(operation=restore), on the controller.
      - An export goes to C(ledger.jsonl) in O(home) by default.
      - A backup and an export replace a file that holds a copy of a ledger, or nothing. Another one, and those that
        novalite has in O(home), stay as they are, and the task fails.
    type: path
  force:
    description:
      - Whether O(operation=restore) may replace a ledger that holds something. A dated copy of it is kept.
    type: bool
    default: false
  keep:
    description: How many dated backups are kept, 1 or more. O(operation=backup) without O(file) removes older ones.
    type: int
    default: 14
  archive_days:
    description:
      - With it, O(operation=backup) then moves what is recorded of instances that were deleted more than so many days
        ago out of the ledger, to a new file C(deleted-<time>.jsonl) in C(ledger-copies) below O(home).
      - Nothing here reads or removes such files. Neither the APIs nor a comparison with hosts know these instances any
        more; what a host that was away for all that time still has of one is reported as unknown, and stays.
    type: int
  revision:
    description: Where O(operation=migrate) goes. The newest by default.
    type: str
notes:
  - A dated copy is also made before the ledger is migrated by any other module. The ten newest of these are kept.
seealso:
  - module: novalite.cloud.ledger_step
"""

EXAMPLES = r"""
- name: Keep a dated copy
  novalite.cloud.ledger:
    operation: backup

- name: Bring it back
  novalite.cloud.ledger:
    operation: restore
    file: /var/lib/novalite/ledger-copies/ledger-20261122T080000Z-0012-backup.sqlite
    force: true

- name: Move to PostgreSQL, what was exported before
  novalite.cloud.ledger:
    operation: restore
    file: /var/lib/novalite/ledger.jsonl
    ledger_url: postgresql://novalite@db/novalite
"""

RETURN = r"""
file:
  description: The file that was written or read.
  returned: O(operation=backup), O(operation=export) and O(operation=restore)
  type: str
archived:
  description: How many instances were moved out of the ledger, or would be.
  returned: O(operation=backup)
  type: int
archive:
  description: The file that has them, or null.
  returned: O(operation=backup)
  type: str
revision:
  description: The revision of the ledger, or of the copy that was restored.
  returned: success
  type: str
newest:
  description: The newest revision that this novalite knows.
  returned: O(operation=info)
  type: str
ledger:
  description: The UUID of the ledger.
  returned: O(operation=info), of a ledger of the newest revision
  type: str
servers:
  description: How many servers it holds.
  returned: O(operation=info), of a ledger of the newest revision
  type: int
copies:
  description: The dated copies, oldest first.
  returned: O(operation=info)
  type: list
  elements: str
copy:
  description: The dated copy of the ledger as it was before, or null if there was nothing to lose.
  returned: O(operation=restore) and O(operation=migrate)
  type: str
behind:
  description: Why nothing may be changed until the hosts were asked; null for a ledger without hosts.
  returned: O(operation=restore)
  type: str
before:
  description: The revision that the ledger had.
  returned: O(operation=migrate)
  type: str
"""

from ..module_utils._ledger_module import run_module

SPEC_RULES: dict = {"required_if": [("operation", "restore", ["file"])]}


def main() -> None:
    run_module(DOCUMENTATION, **SPEC_RULES)


if __name__ == "__main__":
    main()
