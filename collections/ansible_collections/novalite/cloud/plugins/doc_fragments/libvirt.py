# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What every module takes that talks to a host's libvirt
    DOCUMENTATION = r"""
options:
  uri:
    description: The libvirt connection.
    type: str
    default: qemu:///system
requirements:
  - python3-libvirt on the host
  - community.libvirt on the controller
"""
