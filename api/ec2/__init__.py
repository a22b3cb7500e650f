# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The EC2 dialect: Amazon's Query API (version 2016-11-15), as awscli, boto3 and older tools speak it.

A module of `actions` declares its actions when it is imported: each is an operation of the policy table, and has a
shape for its parameters. Functions return dictionaries, which are written as XML; what is done, the other dialects do.
"""

from __future__ import annotations

import importlib
import pkgutil

from flask import Flask

from ..settings import Settings
from . import actions
from .blueprint import ec2


def register(app: Flask, settings: Settings) -> None:
    for module in pkgutil.iter_modules(actions.__path__):
        importlib.import_module(f"{actions.__name__}.{module.name}")
    app.register_blueprint(ec2)
