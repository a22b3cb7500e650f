#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: keypair
short_description: Manage the public keys that instances can be launched with
version_added: 0.1.0
description:
  - Makes, replaces and removes key pairs in the ledger. Only the public half is ever asked for.
  - An instance carries a copy of its key from its launch on. To replace or remove a key pair touches no instance.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.ledger.state
options:
  keypairs:
    description: The key pairs, by name.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the key pair.
        type: str
        required: true
      public_key:
        description:
          - The public key, one line as C(ssh-keygen) writes it to a C(.pub) file. Required for a new key pair.
          - Ed25519, ECDSA, RSA of at least 2048 bits, and the first two on a security key (C(sk-)) are accepted.
        type: str
seealso:
  - module: novalite.cloud.server
"""

EXAMPLES = r"""
- name: Have my key
  novalite.cloud.keypair:
    keypairs:
      - name: test
        public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
    project: demo
"""

RETURN = r"""
keypairs:
  description: The key pairs that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the key pair.
      type: str
    type:
      description: Kind of key pair, as Nova calls it.
      type: str
    public_key:
      description: The public key.
      type: str
    fingerprint:
      description: MD5 of the public key, as Nova's API shows it.
      type: str
  sample:
    - name: test
      type: ssh
      public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE0qXn4gNrdG1XXqUBoIMrLT3hFv1gWvZ6U2zKpGGpUu me@example
      fingerprint: "c3:0e:9a:5d:6c:4f:aa:bc:8e:0a:27:b8:37:2b:11:9f"
"""

from ..module_utils._ledger_module import run_module

NO_LOG = {"keypairs": False, "keypairs.public_key": False}


def main() -> None:
    run_module(DOCUMENTATION, NO_LOG)


if __name__ == "__main__":
    main()
