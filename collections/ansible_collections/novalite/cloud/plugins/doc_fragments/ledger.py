# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Where the ledger is
    HOME = r"""
author: [novalite contributors (@novalite)]
options:
  home:
    description:
      - Directory on the controller that holds the ledger, C(ledger.sqlite). It is made when it does not exist, its
        parent must.
      - Defaults to the variable C(novalite_home), then to the environment variable E(NOVALITE_HOME) of the
        C(ansible-playbook) process, then to C(/var/lib/novalite).
    type: path
  ledger_url:
    description:
      - SQLAlchemy URL of a ledger in PostgreSQL, for several controllers, such as
        V(postgresql://novalite:secret@db.example.com/novalite). Used instead of O(home).
      - Defaults to the variable C(novalite_ledger_url), then to the environment variable E(NOVALITE_LEDGER_URL), unless
        O(home) is given. What holds a password belongs into a vault.
    type: str
requirements:
  - SQLAlchemy >= 2.0.36 and Alembic >= 1.14, on the controller
notes:
  - The work is done on the controller, by an action plug-in of the same name, whatever host the task runs for. Use it
    in a play over V(localhost), or with C(run_once).
"""

    ATTRIBUTES = r"""
attributes:
  check_mode:
    support: full
    description: The same transaction runs, and is rolled back.
  diff_mode:
    support: full
    description: Returns what was, and what is, as structured data.
  action_group:
    support: full
    membership: [novalite.cloud.cloud, novalite.cloud.ledger]
    description: Use C(group/novalite.cloud.ledger) in C(module_defaults) to set O(home) or O(ledger_url) once.
"""

    # What every module that works in the ledger takes, and is; annotated, since yamllint reads plain assignments only
    DOCUMENTATION: str = HOME + ATTRIBUTES

    # Of the modules that work for one project
    PROJECT = r"""
options:
  project:
    description: Name of the project that owns what is named here. M(novalite.cloud.project) makes projects.
    type: str
    default: demo
"""

    # Of the modules that keep records
    STATE = r"""
options:
  state:
    description: Whether what is named here exists.
    type: str
    choices: [present, absent]
    default: present
"""

    # Of the modules that work on a host, and on the ledger by an action plug-in
    HOST = r"""
attributes:
  action_group:
    support: full
    membership: [novalite.cloud.cloud, novalite.cloud.ledger]
    description: Use C(group/novalite.cloud.ledger) in C(module_defaults) to set O(home) or O(ledger_url) once.
options:
  name:
    description: Name of the compute host. Defaults to its name in the inventory.
    type: str
"""
