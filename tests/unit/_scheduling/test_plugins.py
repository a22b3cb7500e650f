# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options by Nova's names, and filters and weighers of the user's own."""

from __future__ import annotations

import pathlib
import textwrap

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import plugins
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select
from tests.parity import cases

HOSTS = [HostState(name=name, vcpus=8, memory_mb=8192, disk_gb=100) for name in ("even-2", "odd-1", "odd-3")]
REQUEST = Request(uuid="u", name="web-1", vcpus=1, memory_mb=512, disk_gb=1)
PLACEMENT = {"requested_host", "retry", "other_ledger", "ranges"}
PLACEMENT |= {"availability_zone", "traits", "hardware", "pci_passthrough", "numa_topology", "vcpu", "ram", "disk"}


def write(path: pathlib.Path, text: str) -> str:
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_every_enabled_name_is_a_plug_in_and_every_plug_in_has_its_own_name() -> None:
    options = Options()
    assert [weigher.name for weigher in plugins.weighers_for(options)] == list(options.enabled_weighers)
    assert {plugin.name for plugin in plugins.filters_for(options)} == set(options.enabled_filters)
    for ours in (plugins.FILTERS, plugins.WEIGHERS):
        names = [plugin.name for plugin in ours]
        assert len(set(names)) == len(names) > 10


def test_every_weigher_has_an_option_for_its_multiplier() -> None:
    for plugin in plugins.WEIGHERS:
        assert isinstance(getattr(Options(), plugin.option), float)


def test_options_are_checked_by_name() -> None:
    assert Options.of({"host_subset_size": 2, "max_io_ops_per_host": None}) == Options(host_subset_size=2)
    assert Options.of(None) == Options()
    with pytest.raises(NovaliteError, match="no scheduler option 'cpu_multiplier'"):
        Options.of({"cpu_multiplier": 2})
    with pytest.raises(NovaliteError, match=r"no scheduler filter 'CoreFiltre'; take some of: .*vcpu"):
        select(HOSTS, [REQUEST], options=Options(enabled_filters=["CoreFiltre"]))


def test_the_names_of_a_nova_conf(tmp_path: pathlib.Path) -> None:
    def filters_of(*names: str) -> set[str]:
        chosen = {scheduling_filter.name for scheduling_filter in plugins.filters_for(Options(enabled_filters=names))}
        assert chosen >= PLACEMENT  # which Nova has beside its filters
        return chosen - PLACEMENT

    def weighers_of(*names: str) -> list[str]:
        return [weigher.name for weigher in plugins.weighers_for(Options(enabled_weighers=names))]

    assert filters_of("ComputeFilter", "RamFilter", "IoOpsFilter", "AggregateInstanceExtraSpecsFilter", "json") == {
        "compute",
        "io_ops",
        "aggregate_instance_extra_specs",
        "json",
    }
    assert filters_of("nova.scheduler.filters.io_ops_filter.IoOpsFilter", "io_ops", "AllHostsFilter") == {"io_ops"}
    assert filters_of("nova.scheduler.filters.all_filters") == set(Options().enabled_filters) - PLACEMENT
    assert filters_of("AllHostsFilter") == set()
    assert [scheduling_filter.name for scheduling_filter in plugins.filters_for(Options(enabled_filters=["ram"]))] == [
        "ram"
    ]
    assert weighers_of("RAMWeigher", "CPUWeigher") == ["ram", "cpu"]
    assert weighers_of("nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher") == ["soft_affinity"]
    assert weighers_of("nova.scheduler.weights.all_weighers") == list(Options().enabled_weighers)
    # a user's own in the place of ours keeps Nova's name for it
    own = write(tmp_path / "own.py", 'NAME = "ram"\ndef passes(host, request, options):\n    return "no"\n')
    chosen = {
        scheduling_filter.name: scheduling_filter
        for scheduling_filter in plugins.filters_for(Options(enabled_filters=["RamFilter"], plugin_paths=[own]))
    }
    assert chosen["ram"].passes(HOSTS[0], REQUEST, Options()) == "no"


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("filters", "RamFiltre", "the nearest is RamFilter$"),
        ("filters", "nova.scheduler.filters.ram_filter.RamFiltre", "the nearest is RamFilter$"),
        ("filters", "AggregateCoreFilter", r": a ratio is the host's \(compute_node_cpu_ratio .*\), and vcpu holds it"),
        ("filters", "nova.scheduler.weights.all_weighers", "take some of"),
        ("filters", "corp.filters.RamFilter", "no scheduler filter 'corp.filters.RamFilter'; take some of"),
        ("weighers", "RamWeigher", "the nearest is RAMWeigher$"),
        ("weighers", "ImagePropertiesWeigher", "hosts are not weighed by the images that they run; take it out"),
    ],
)
def test_a_name_of_a_nova_conf_that_nothing_here_has(kind: str, name: str, message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        getattr(plugins, f"{kind}_for")(Options.of({f"enabled_{kind}": [name]}))


def test_the_classes_are_those_that_the_parity_cases_compare_with() -> None:
    for plugged_in, theirs in ((plugins.FILTERS, cases.FILTERS), (plugins.WEIGHERS, cases.WEIGHERS)):
        ours = {plugin.name: plugin.nova for plugin in plugged_in}
        assert theirs == {name: ours[name] for name in theirs}


def test_a_filter_and_a_weigher_of_the_users_own(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path / "odd.py",
        """
        NAME = "odd"
        RUN_ONCE_PER_REQUEST = True

        def passes(host, request, options):
            return None if host.name.startswith("odd") else "is not odd"
        """,
    )
    write(
        tmp_path / "last.py",
        """
        NAME = "last"

        def weigh(hosts, request, options):
            return [float(host.name[-1]) for host in hosts]
        """,
    )
    write(tmp_path / "_part.py", "raise RuntimeError")
    options = Options(plugin_paths=[str(tmp_path)])
    (decision,) = select(HOSTS, [REQUEST], "filter_scheduler", options=options)
    assert [host.name for host in decision.weighed] == ["odd-3", "odd-1"]
    assert [step.removed for step in decision.filters if step.name == "odd"] == [{"even-2": "is not odd"}]
    assert decision.weighed[0].details["last"] == 1.0

    pack = Options(plugin_paths=[str(tmp_path)], weight_multipliers={"last": -1.0})
    (decision,) = select(HOSTS, [REQUEST], "filter_scheduler", options=pack)
    assert decision.host == "odd-1"


def test_a_plug_in_of_the_same_name_takes_the_place_of_ours(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path / "compute.py",
        """
        NAME = "compute"

        def passes(host, request, options):
            return "is closed today"
        """,
    )
    (decision,) = select(HOSTS, [REQUEST], options=Options(plugin_paths=[path]))
    assert "compute removed 3 (even-2: is closed today" in decision.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def passes(host, request, options):\n    return None\n", r"needs NAME and passes"),
        ("NAME = 'x'\n", r"needs NAME and passes"),
        ("import nothing_like_this\n", r"cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_plug_in_that_is_none(tmp_path: pathlib.Path, text: str, message: str) -> None:
    path = write(tmp_path / "bad.py", text)
    with pytest.raises(NovaliteError, match=f"bad.py' {message}"):
        plugins.filters_for(Options(plugin_paths=[path]))


def test_a_plug_in_path_that_does_not_exist(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NovaliteError, match="does not exist"):
        plugins.weighers_for(Options(plugin_paths=[str(tmp_path / "absent")]))
