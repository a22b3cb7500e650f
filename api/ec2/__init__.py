# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The EC2 dialect: Amazon's Query API (version 2016-11-15), as awscli, boto3 and older tools speak it.

A module of `actions` declares its actions with `blueprint.action` when it is imported. Each has its
rule in the policy table ("ec2:RunInstances") and a shape for its parameters; views give back dictionaries, which
rendering.py writes as XML. What is done, the operations and jobs of the other dialects do.
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
