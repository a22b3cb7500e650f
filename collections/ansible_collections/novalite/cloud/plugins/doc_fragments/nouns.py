# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import typing as t

from ansible.module_utils.common.yaml import yaml_load

from ..module_utils._rules import noun_options as nouns
from ..module_utils._rules.options import Option, documented
from ..module_utils._rules.server_options import SERVER, TEXTS


def _of(section: str, options: t.Iterable[Option], texts: str) -> str:
    return json.dumps({"options": {section: {"suboptions": documented(options, yaml_load(texts))}}})


class ModuleDocFragment:
    # The options of one of each; annotated, since yamllint reads plain assignments only
    SERVER: str = _of("servers", SERVER, TEXTS)
    NETWORK: str = _of("networks", nouns.NETWORK, nouns.NETWORK_TEXTS)
    VOLUME: str = _of("volumes", nouns.VOLUME, nouns.VOLUME_TEXTS)
    IMAGE: str = _of("images", nouns.IMAGE, nouns.IMAGE_TEXTS)
    SECURITY_GROUP: str = _of("security_groups", nouns.SECURITY_GROUP, nouns.SECURITY_GROUP_TEXTS)
    PROJECT: str = _of("projects", nouns.PROJECT, nouns.PROJECT_TEXTS)
