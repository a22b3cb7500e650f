# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU of a host's guests, as its operator has it: Nova's cpu_mode, cpu_models and cpu_model_extra_flags. Pure."""

from __future__ import annotations

import re
import typing as t

from .._json import JsonMapping

OPTIONS = ("cpu_mode", "cpu_models", "cpu_model_extra_flags")  # of the module compute_host, and facts
HOST_MODEL, PASSTHROUGH, CUSTOM, NONE = "host-model", "host-passthrough", "custom", "none"
MODES = (HOST_MODEL, PASSTHROUGH, "maximum", CUSTOM, NONE)
_POLICIES = {"+": "require", "-": "disable"}
_NAME = re.compile(r"[A-Za-z0-9._+-]{1,64}")


class CpuMode(t.NamedTuple):
    """A `<cpu>` of libvirt's."""

    mode: str
    model: str | None = None
    features: tuple[tuple[str, str], ...] = ()  # (name, policy)


def fault_of(options: JsonMapping) -> str | None:
    """Return what is wrong with options that contradict each other, with the remedy."""
    mode, models, flags = (options.get(name) for name in OPTIONS)
    for name in (*(models or ()), *(flags or ())):
        if _NAME.fullmatch(str(name)) is None:
            return f"cpu_models and cpu_model_extra_flags: {str(name)[:40]!r} is not a name of libvirt's: correct it"
    if mode == CUSTOM and not models:
        return "cpu_mode is custom, and cpu_models is empty: name one, `virsh cpu-models x86_64` has them"
    if mode != CUSTOM and models:
        return f"cpu_models is {', '.join(models)}, which counts with cpu_mode=custom only: set that"
    if mode == NONE and flags:
        return "cpu_model_extra_flags does not count with cpu_mode=none: take one of them out"
    return None


def cpu_mode_of(facts: JsonMapping) -> CpuMode | None:
    """Return the CPU of guests on the compute host that `facts` describe; None leaves it to QEMU. Where nobody chose,
    it is the host's own, and QEMU's without KVM, which would have to interpret it."""
    mode, models, flags = (facts.get(name) for name in OPTIONS)
    if mode is None and facts.get("domain_type") == "kvm":
        mode = HOST_MODEL
    if mode in (None, NONE):
        return None
    features = [(flag.lstrip("+-").lower(), _POLICIES.get(flag[:1], "require")) for flag in flags or ()]
    return CpuMode(mode, models[0] if models else None, tuple(sorted(features)))


def description_of(facts: JsonMapping) -> str:
    """Describe the CPU, so that guests whose CPUs are the same have the same description."""
    cpu = cpu_mode_of(facts)
    if cpu is None:
        return NONE
    own = facts.get("cpu_model") if cpu.mode == PASSTHROUGH else cpu.model
    flags = [("-" if policy == "disable" else "+") + name for name, policy in cpu.features]
    return " ".join([cpu.mode, *([str(own)] if own else []), *flags])
