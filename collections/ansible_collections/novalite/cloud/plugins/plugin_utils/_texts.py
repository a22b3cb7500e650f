# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists and booleans as people write them where everything is text: with `-e`, and in inventories by INI.

Ansible checks the options of roles against their argument_specs, and hands them over as they were written. In a
template the text `deploy` is a list of six letters, and `false` is true.
"""

from __future__ import annotations

import yaml
from ansible.module_utils.common.validation import check_type_bool, check_type_list

from ..module_utils._json import Json


def as_list(value: Json) -> list[Json]:
    """`value` as a list: one name, or one mapping, is a list of one; a text may be `a, b` or `[a, b]`. Raises
    ValueError."""
    if value is None:
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"{value!r} is not a list: {str(error).splitlines()[0]}") from error
    if isinstance(value, str):
        return [part.strip() for part in check_type_list(value) if part.strip()]
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{value!r} is not a list: write [a, b], or one name")
    return list(value)


def as_bool(value: Json) -> bool:
    """`value` as a boolean, by Ansible's words for them. Raises ValueError."""
    try:
        return bool(check_type_bool(value))
    except TypeError:
        raise ValueError(f"{value!r} is not a boolean: write true or false") from None
