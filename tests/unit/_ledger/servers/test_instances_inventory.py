# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory plug-in, as `ansible-inventory` itself runs it over a ledger of its own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import typing as t

import pytest
import sqlalchemy as sa
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import image
from tests.unit.playbooks.warm import WARM

ROOT = pathlib.Path(__file__).parents[4]
EXAMPLE = ROOT / "inventories" / "instances.novalite.yml"
PLUGIN = {"plugin": "novalite.cloud.instances"}

pytestmark = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)


class Inventory:
    def __init__(self, home: pathlib.Path) -> None:
        self.home = home

    def __call__(self, *sources: pathlib.Path) -> subprocess.CompletedProcess[str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "NOVALITE_"))}
        environment = {
            **inherited,
            "NOVALITE_HOME": str(self.home),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "COLUMNS": "400",
        }
        words = ["--list", *(f"--inventory={source}" for source in sources)]
        return WARM.run(words, self.home, environment, "ansible-inventory")

    def hosts(self, options: dict[str, t.Any]) -> dict[str, dict[str, t.Any]]:
        source = self.home / "test.novalite.yml"
        source.write_text(yaml.safe_dump({**PLUGIN, **options}))
        return t.cast("dict[str, dict[str, t.Any]]", self.read(source)["_meta"]["hostvars"])

    def read(self, source: pathlib.Path) -> dict[str, t.Any]:
        done = self(source)
        assert "WARNING" not in done.stderr, done.stderr
        return t.cast("dict[str, t.Any]", json.loads(done.stdout, object_hook=plain))


def plain(value: dict[str, t.Any]) -> t.Any:
    """ansible-inventory marks what is no template so that it remains none."""
    return value.get("__ansible_unsafe", value)


@pytest.fixture
def inventory(tmp_path: pathlib.Path) -> Inventory:
    return Inventory(tmp_path)


def launch(cloud: t.Any, name: str, host: str = "hv1", **more: t.Any) -> list[str]:
    built = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny", **more})["to_build"]
    uuids = [instance["uuid"] for instance in built]
    for uuid in uuids:
        cloud.place(uuid, host)
    cloud.state({"uuids": uuids, "host": host, "state": "active"})
    return uuids


def test_the_example_shows_what_was_launched(cloud: t.Any, inventory: Inventory) -> None:
    launch(cloud, "web", count=2, metadata={"role": "web"}, key="test")
    own_name = launch(cloud, "hv2", host="hv2")
    (inventory.home / "ssh_config").touch()
    listing = inventory.read(EXAMPLE)
    everyone = ["web-1", "web-2", *own_name]
    assert listing["metadata_role_web"]["hosts"] == ["web-1", "web-2"]
    for group in ("project_demo", "network_private", "zone_nova", "security_group_default", "flavor_m1_nano"):
        assert listing[group]["hosts"] == everyone
    assert listing["host_hv2"]["hosts"] == own_name
    web = listing["_meta"]["hostvars"]["web-1"]
    assert web["ansible_ssh_common_args"] == f"-F {inventory.home}/ssh_config"
    assert web["novalite_host"] == "hv1"
    assert web["ansible_host"] == web["novalite_networks"][0]["ip"]


def test_the_guest_agent_is_the_way_in_where_it_is_asked_for(cloud: t.Any, inventory: Inventory) -> None:
    launch(cloud, "web")
    cloud.write(sa.update(image).where(image.c.name == "ami-tiny").values(properties={"hw_qemu_guest_agent": "yes"}))
    launch(cloud, "silent")
    hosts = inventory.hosts({"agent": "always"})
    assert hosts["silent"]["ansible_connection"] == "community.libvirt.libvirt_qemu"
    assert hosts["silent"]["ansible_host"] == hosts["silent"]["novalite_domain_name"]
    assert hosts["silent"]["ansible_libvirt_uri"] == "qemu+ssh://root@hv1/system"
    assert "ansible_connection" not in hosts["web"]


def test_what_a_tenant_wrote_is_no_template(cloud: t.Any, inventory: Inventory) -> None:
    text = "{{ lookup('ansible.builtin.env', 'HOME') }}"
    launch(cloud, "web", metadata={"said": text})
    hosts = inventory.hosts({"strict": True, "compose": {"repeated": "novalite_metadata.said"}})
    assert hosts["web"]["repeated"] == hosts["web"]["novalite_metadata"]["said"] == text


def test_only_the_states_and_projects_that_were_asked_for(cloud: t.Any, inventory: Inventory) -> None:
    launch(cloud, "web")
    cloud.server({"name": "new", "flavor": "m1.nano", "image": "ami-tiny"})
    assert set(inventory.hosts({"statuses": ["building"], "group_by": []})) == {"new"}
    assert inventory.hosts({"projects": ["other"]}) == {}
    (uuid,) = inventory.hosts({"projects": ["other"], "all_projects": True})
    assert len(uuid) == 36, "several projects: everybody chooses the names of his own"
    assert set(inventory.hosts({"all_projects": True, "hostnames": "name"})) == {"web"}


def test_no_instance_is_called_as_a_group_that_is_made_of_others(cloud: t.Any, inventory: Inventory) -> None:
    """Ansible would take what is said of the host `web` for the group `web`, and put its hosts where `web` is to be."""
    launch(cloud, "alpha", metadata={"role": "web"})
    evil = launch(cloud, "web", metadata={"role": "db"}) + launch(cloud, "empty", metadata={"role": "x"})
    options = {
        "strict": True,
        "groups": {"web": "novalite_metadata.role | default('') == 'web'", "empty": "false"},
        "keyed_groups": [{"key": "novalite_metadata.role | default('')", "prefix": "", "separator": ""}],
    }
    source = inventory.home / "groups.novalite.yml"
    source.write_text(yaml.safe_dump({**PLUGIN, **options}))
    listing = inventory.read(source)
    assert listing["web"]["hosts"] == ["alpha"] and listing["metadata_role_db"]["hosts"] == [evil[0]]
    assert set(listing["_meta"]["hostvars"]) == {"alpha", *evil}


def test_what_is_wrong_is_said(cloud: t.Any, inventory: Inventory) -> None:
    launch(cloud, "web")
    wrong: list[tuple[dict[str, t.Any], str]] = [
        ({"home": "nowhere"}, "nowhere: launch something first, or set `home`"),
        ({"projects": ["none"]}, "unknown project 'none': there are demo, other"),
        ({"statuses": ["dead"]}, "statuses"),
        ({"strict": True, "compose": {"x": "nothing.at.all"}}, "Could not set x for host web"),
    ]
    sources = []
    for number, (options, _message) in enumerate(wrong):
        sources.append(inventory.home / f"{number}.novalite.yml")
        sources[-1].write_text(yaml.safe_dump({**PLUGIN, **options}))
    done = inventory(*sources)
    for _options, message in wrong:
        assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (inventory.home / "nowhere").exists()


def test_a_cache_is_asked_first_and_only_for_the_same_question(cloud: t.Any, inventory: Inventory) -> None:
    launch(cloud, "web")
    kept = {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(inventory.home / "cache")}
    assert set(inventory.hosts(kept)) == {"web"}
    launch(cloud, "db")
    assert set(inventory.hosts(kept)) == {"web"}
    assert set(inventory.hosts({**kept, "statuses": ["active", "stopped"]})) == {"web", "db"}
