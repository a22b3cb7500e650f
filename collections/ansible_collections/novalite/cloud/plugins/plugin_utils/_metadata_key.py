# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key of a host for module metadata_proxy, derived from a secret that stays here on the controller."""

from __future__ import annotations

from ..module_utils._guest.signature import host_key
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._secret_file import ensure_secret, read_secret, secret_path
from . import _home


def with_key(args: JsonMapping, task_vars: JsonMapping, templar: _home.Templar, check_mode: bool) -> JsonObject:
    """Return `args` of metadata_proxy with `host` and `key`, and without `home`: where the secret lies is no business
    of the hypervisor. Raises NovaliteError."""
    host = args.get("host") or task_vars["inventory_hostname"]
    complete = {name: value for name, value in args.items() if name not in ("home", "key")}
    if args.get("state", "present") == "present":
        path = secret_path(_home.home(args.get("home"), task_vars, templar))
        # a check makes no file; what it shows of the key then says only that there will be one
        secret = read_secret(path) or bytes(32) if check_mode else ensure_secret(path)
        complete["key"] = host_key(secret, host).hex()
    return {**complete, "host": host}
