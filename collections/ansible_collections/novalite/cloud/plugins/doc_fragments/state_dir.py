# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What every module takes that names a file of an instance, an image or a volume
    DOCUMENTATION = r"""
options:
  state_dir:
    description: Directory on the compute hosts under which novalite keeps images, instances and volumes.
    type: path
    default: /var/lib/novalite
"""
