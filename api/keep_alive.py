# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ssh's keep-alive for playbooks that the command and the job engine start, whatever the user's ansible.cfg says."""

from __future__ import annotations

import configparser
import os
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._keepalive import ARGUMENTS

VARIABLE = "ANSIBLE_SSH_EXTRA_ARGS"
_OTHERS = ("~/.ansible.cfg", "/etc/ansible/ansible.cfg")


def configuration(environ: t.Mapping[str, str], directory: str) -> str | None:
    """The ansible.cfg that Ansible reads when it is started with `environ` in `directory`; None for none."""
    if environ.get("ANSIBLE_CONFIG"):
        return os.path.expanduser(environ["ANSIBLE_CONFIG"])
    paths = (os.path.join(directory, "ansible.cfg"), *map(os.path.expanduser, _OTHERS))
    return next(filter(os.path.exists, paths), None)


def variables(environ: t.Mapping[str, str], directory: str) -> dict[str, str]:
    """The variable that adds keep-alive to what ssh is told otherwise; none where the user's own arguments have that
    place, for a variable would overrule theirs. Of options that are said twice ssh takes the first."""
    path = configuration(environ, directory)
    settings = configparser.RawConfigParser(strict=False)
    try:
        settings.read(path or [])
    except (configparser.Error, UnicodeDecodeError):
        return {}  # Ansible itself says what is wrong
    own = VARIABLE in environ or settings.has_option("ssh_connection", "ssh_extra_args")
    return {} if own else {VARIABLE: ARGUMENTS}
