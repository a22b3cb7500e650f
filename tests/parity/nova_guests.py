"""Ask nova 34.0.0 itself for the domain XML of every case, and write it down. Runs in an environment that has nova:

    .cache/nova-venv/bin/pip install testtools fixtures oslotest requests-mock testscenarios wsgi_intercept
    .cache/nova-venv/bin/python -W ignore -m tests.parity.nova_guests

Nova's own libvirt driver makes the XML; the libvirt below it is Nova's own stand-in.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import logging
import pathlib
import typing as t
from unittest import mock
from xml.etree import ElementTree

import nova.conf
from nova import context, objects
from nova.network import model
from nova.tests.fixtures import libvirt as stand_in
from nova.virt import fake, hardware
from nova.virt.libvirt import blockinfo, driver

from tests.parity import guest_cases

EXPECTED = pathlib.Path(__file__).with_name("guests.json.gz")
CONF = nova.conf.CONF
_UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
_IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
_VIF = "2b7a0000-0000-4000-8000-000000000000"
_NUMBERS = {"id": 7, "root_gb": 1, "ephemeral_gb": 0, "memory_mb": 512}
_NAMES = {"uuid": _UUID, "host": "h", "node": "h", "display_name": "web", "user_id": "u", "project_id": "p"}
_NOTHING = ("vcpu_model", "resources", "device_metadata", "ephemeral_key_uuid", "vm_mode", "architecture", "created_at")
_MORE = ("default_ephemeral_device", "default_swap_device", "launched_at", "migration_context", "trusted_certs")


class Guests:
    """`answer(case)`: the XML that Nova makes of it, or the exception that it raises."""

    def __init__(self) -> None:
        objects.register_all()
        CONF([], project="nova", default_config_files=[])
        nova.conf.neutron.register_dynamic_opts(CONF)
        stand_in.LibvirtFixture().setUp()
        CONF.set_override("instances_path", "/var/lib/nova/instances")
        CONF.set_override("enabled", True, "serial_console")
        for name, value in {"virt_type": "kvm", "swtpm_enabled": True, "num_pcie_ports": 14}.items():
            CONF.set_override(name, value, "libvirt")

    def answer(self, case: guest_cases.Case) -> dict[str, str]:
        for name, value in case.host.items():
            CONF.set_override(name, value, "libvirt")
        try:
            return {"xml": self._xml(case)}
        except Exception as error:  # each is Nova's answer
            return {"raises": type(error).__name__, "message": str(error)[:200]}
        finally:
            for name in case.host:
                CONF.clear_override(name, "libvirt")

    def _xml(self, case: guest_cases.Case) -> str:
        libvirt_driver = driver.LibvirtDriver(fake.FakeVirtAPI(), False)
        libvirt_driver._host._supports_uefi = libvirt_driver._host._supports_secure_boot = True
        libvirt_driver._host.get_connection()._obj.host_info = _host()  # behind eventlet's proxy
        image = objects.ImageMeta.from_dict(
            {"id": _IMAGE, "name": "i", "disk_format": "qcow2", "properties": dict(case.properties)}
        )
        instance = self._instance(case)
        asked = hardware.numa_get_constraints(instance.flavor, image)
        if asked is not None:
            there = libvirt_driver._get_host_numa_topology()
            instance.numa_topology = hardware.numa_fit_instance_to_host(there, asked, None)
            assert instance.numa_topology is not None, "the stand-in's host has no room for it"
        disk_info = blockinfo.get_disk_info(CONF.libvirt.virt_type, instance, image)
        with (
            mock.patch.object(objects.Instance, "save"),
            mock.patch.object(driver.serial_console, "acquire_port", return_value=10000),
        ):
            xml = libvirt_driver._get_guest_xml(
                context.RequestContext("u", "p"), instance, model.NetworkInfo([_vif()]), disk_info, image
            )
        root = ElementTree.fromstring(xml)
        for name in ("metadata", "sysinfo"):  # with the time in it, and Nova's name
            for node in root.findall(name):
                root.remove(node)
        return ElementTree.tostring(root, encoding="unicode")

    @staticmethod
    def _instance(case: guest_cases.Case) -> objects.Instance:
        flavor = objects.Flavor(
            **{"id": 1, "flavorid": "1", "name": "f", "vcpus": case.vcpus, "memory_mb": 512, "swap": 0},
            **{"root_gb": 1, "ephemeral_gb": 0, "extra_specs": dict(case.specs)},
        )
        return objects.Instance(
            **{**_NUMBERS, **_NAMES, **dict.fromkeys((*_NOTHING, *_MORE))},
            **{"vcpus": case.vcpus, "flavor": flavor, "image_ref": _IMAGE, "os_type": case.properties.get("os_type")},
            **{"kernel_id": "", "ramdisk_id": "", "root_device_name": "/dev/vda", "hostname": "web", "metadata": {}},
            config_drive="True" if case.config_drive else "",
            system_metadata={"vtpm_secret_uuid": _UUID},
            numa_topology=None,
            pci_devices=objects.PciDeviceList(objects=[]),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            keypairs=objects.KeyPairList(objects=[]),
        )


def _host() -> stand_in.HostInfo:
    """Two NUMA nodes of four CPUs, each with 2 GiB in small pages and 1 GiB in huge ones."""
    pages = {node: stand_in.create_mempages([(4, 2 << 18), (2048, 512)]) for node in (0, 1)}
    return stand_in.HostInfo(cpu_nodes=2, cpu_cores=4, kB_mem=6 << 20, mempages=pages)


def _vif() -> model.VIF:
    network = model.Network(id="n", bridge="br100", label="net", subnets=[])
    return model.VIF(
        id=_VIF,
        address="fa:16:3e:00:00:01",
        network=network,
        type=model.VIF_TYPE_OVS,  # Nova has no other bridges any more
        devname="tap2b7a0000-00",
        ovs_interfaceid=_VIF,
        details={"ovs_hybrid_plug": True, "port_filter": True},
        vnic_type="normal",
        active=True,
    )


def main() -> None:
    logging.disable(logging.CRITICAL)
    guests = Guests()
    answers: dict[str, t.Any] = {name: guests.answer(case) for name, case in guest_cases.CASES.items()}
    document = {"nova": importlib.metadata.version("nova"), "digest": guest_cases.digest(), "answers": answers}
    EXPECTED.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 9, mtime=0))
    for name, answer in answers.items():
        if "raises" in answer:
            print(f"{name}: {answer['raises']}: {answer['message']}")
    print(f"{len(answers)} cases; {EXPECTED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
