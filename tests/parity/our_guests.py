"""The same cases for our domain XML."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import guest_of, render
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest import image_properties
from ansible_collections.novalite.cloud.plugins.module_utils._model import hardware, host_numa, numa
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import numa_fit
from tests.parity import guest_cases

_UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
_FACTS = {
    **{"domain_type": "kvm", "arch": "x86_64", "machine": "pc", "emulator": "/usr/bin/qemu-system-x86_64"},
    **{"disk_cache": "none", "antispoof": "chains", "libvirt_version": 8000000, "tpm": ["1.2", "2.0", "tpm-tis"]},
    "machine_types": {"pc": ["efi"], "q35": ["efi", "secure"]},
}
# as the host below Nova, which has all of its CPUs to dedicate to a guest that pins, and to share otherwise
_NODE = {"memory_mb": 3072, "pages": {"4": 2 * 2**18, "2048": 512}}
_NODES = {
    "numa": [
        {"id": 0, "cpus": "0-3", "siblings": ["0", "1", "2", "3"], **_NODE},
        {"id": 1, "cpus": "4-7", "siblings": ["4", "5", "6", "7"], **_NODE},
    ]
}
_NETWORK = {"bridge": "br100", "cidr": None, "cidr_v6": None, "gateway_v6": None, "mtu": None}
_NIC = {"id": "2b7a0000-0000-4000-8000-000000000000", "mac": "fa:16:3e:00:00:01", "ip": None, "dhcp_server": None}
_NAMES = {"uuid": _UUID, "name": "web", "domain_name": "instance-00000007", "project": {"id": "p", "name": "p"}}
_OUR_NAMES = {"hw_disk_discard": "disk_discard"}  # of Nova's options, where they differ


def answer(case: guest_cases.Case) -> dict[str, str]:
    """Return the XML that we make of it, or the reason for which it is refused."""
    flavor = {"name": "f", "vcpus": case.vcpus, "memory_mb": 512, "extra_specs": dict(case.specs)}
    image = {"id": "155d900f", "name": "i", "properties": dict(case.properties)}
    instance: t.Any = {**_NAMES, "flavor": flavor, "image": image, "config_drive": case.config_drive}
    instance["nics"] = [{**_NIC, "network": _NETWORK}]
    facts = {**_FACTS, **{_OUR_NAMES.get(name, name): value for name, value in case.host.items()}}
    try:
        image_properties.check(image)
        hardware.checked(flavor, image)
        claim, asked = None, numa.numa_of(flavor, image)
        if asked is not None:
            facts |= {**_NODES, "cpu_dedicated_set": "0-7" if asked.dedicated else ""}
            fitted = numa_fit.fit(host_numa.cells_of(facts), [], asked, numa_fit.Ratios())
            assert isinstance(fitted, numa.Claim), fitted
            claim = fitted
        return {"xml": render(guest_of(instance, facts, claim=claim))}
    except NovaliteError as error:
        return {"refused": str(error)}
