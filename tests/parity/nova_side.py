"""Nova's scheduler without its services: real HostManager, HostStates, filters, weighers and SchedulerManager."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import random
import traceback
import typing as t
from unittest import mock

import nova.conf
from nova import context, exception, objects
from nova.compute import api as compute_api
from nova.scheduler import host_manager, manager, request_filter, utils
from oslo_utils import timeutils

from tests.parity import cases

VERSION = importlib.metadata.version("nova")
CONF = nova.conf.CONF
_UUID = "00000000-0000-4000-8000-{:012d}"
_IMAGES = {name: _UUID.format(900 + number) for number, name in enumerate(cases.IMAGES)}


class HostManager(host_manager.HostManager):
    """Nova's, without the database behind cells, aggregates and instances."""

    def __init__(self) -> None:
        super().__init__()
        order = {name: number for number, name in enumerate(cases.WEIGHERS.values())}
        # Nova sums in the order of its directory, which is the file system's
        self.weighers.sort(key=lambda weigher: order.get(type(weigher).__name__, len(order)))

    def refresh_cells_caches(self) -> None:
        self.cells: dict[str, t.Any] = {}
        self.enabled_cells: list[t.Any] = []
        self.host_to_cell_uuid: dict[str, str] = {}

    def _init_aggregates(self) -> None:
        pass

    def _init_instance_info(self, computes_by_cell: t.Any = None) -> None:
        pass


class _Manager(manager.SchedulerManager):
    """Nova's, with hosts given to it, and a claim that follows Placement's rule."""

    def __init__(self, hosts_manager: host_manager.HostManager) -> None:
        self.host_manager = hosts_manager
        self.rankings: list[list[str]] = []
        self.weights: list[list[float]] = []

    def _get_sorted_hosts(self, spec: t.Any, states: t.Iterable[t.Any], index: int) -> list[t.Any]:
        # Nova's order among equals is the order of a set of strings, another one in each process: here, by name
        weighed: list[t.Any] = []
        original = self.host_manager.get_weighed_hosts

        def remember(hosts: t.Any, spec_obj: t.Any) -> t.Any:
            weighed[:] = original(hosts, spec_obj)
            return list(weighed)

        with mock.patch.object(self.host_manager, "get_weighed_hosts", remember):
            ordered = super()._get_sorted_hosts(spec, sorted(states, key=lambda host_state: host_state.host), index)
        self.rankings.append([host_state.host for host_state in ordered])
        self.weights.append([weighed_host.weight for weighed_host in weighed])
        return ordered


class Scheduler:
    """`answer(case)`: what Nova decides, as data."""

    def __init__(self) -> None:
        objects.register_all()
        CONF([], project="nova", default_config_files=[])
        self.context = context.RequestContext("user", "project", is_admin=True)
        self.context.can = lambda *_args, **_rules: True  # an operator may launch flavors without a root disk
        self._overridden: list[tuple[str, str]] = []

    def answer(self, case: cases.Case) -> dict[str, t.Any]:
        """Per instance: [ranking, of_weights]; `literal` is what Nova's own loop chooses for all of them together.

        `raises` instead when Nova fails the request with another exception than NoValidHost.
        """
        self.configure(case["options"])
        try:
            stepwise = self._stepwise(case)
            literal, full = self._literally(case)
        except Exception as error:  # whatever Nova fails with; a mistake of this harness is none of Nova's
            if "/nova/" not in traceback.extract_tb(error.__traceback__)[-1].filename:
                raise
            return {"raises": type(error).__name__}
        return {"steps": stepwise, "literal": literal, "full": full}

    # what Nova decides ------------------------------------------------------------------------------------------

    def _stepwise(self, case: cases.Case) -> list[t.Any]:
        """One instance after another, Placement asked before each."""
        scheduler, states, spec, uuids = self._prepared(case)
        steps: list[t.Any] = []
        for number, uuid in enumerate(uuids):
            spec.instance_uuid = uuid
            # what filters refused for one instance is not looked at again for the next: as in _schedule
            candidates = [state for state in states if self._fits(state, spec, case)]
            states = ordered = scheduler._get_sorted_hosts(spec, candidates, number) if candidates else []
            if not ordered:
                steps.append(None)
                break
            steps.append(
                [[int(host_state.host[2:]) for host_state in ordered], cases.of_weights(scheduler.weights[-1])]
            )
            self._claim(ordered[0], spec)
            scheduler._consume_selected_host(ordered[0], spec, instance_uuid=uuid)
        return steps

    def _literally(self, case: cases.Case) -> tuple[list[int] | None, bool]:
        """SchedulerManager._schedule as it is, Placement asked once; and whether a host filled up on the way."""
        scheduler, states, spec, uuids = self._prepared(case)
        candidates = [state for state in states if self._fits(state, spec, case)]
        requests: dict[str, t.Any] = {
            candidate.uuid: [{"allocations": {candidate.uuid: {}}, "mappings": {}}] for candidate in candidates
        }
        by_uuid = {candidate.uuid: candidate for candidate in candidates}
        full: list[str] = []
        chosen: list[int] = []

        def claim(_context: t.Any, _client: t.Any, _spec: t.Any, _uuid: str, request: t.Any, **_rest: t.Any) -> bool:
            host = by_uuid[next(iter(request["allocations"]))]
            if not self._fits(host, spec, case):
                full.append(host.host)
                return False
            self._claim(host, spec)
            chosen.append(int(host.host[2:]))
            full.extend(candidate.host for candidate in candidates if not self._fits(candidate, spec, case))
            return True

        if not candidates:
            return None, False
        with (
            mock.patch.object(manager.SchedulerManager, "placement_client", mock.Mock()),
            mock.patch.object(scheduler, "_get_all_host_states", return_value=candidates),
            mock.patch.object(scheduler, "_cleanup_allocations"),
            mock.patch.object(utils, "claim_resources", claim),
        ):
            try:
                scheduler._schedule(self.context, spec, uuids, requests, {}, "1.36")
            except exception.NoValidHost:
                return None, bool(full)
        return chosen, bool(full)

    def _prepared(self, case: cases.Case) -> tuple[_Manager, list[t.Any], t.Any, list[str]]:
        hosts = HostManager()
        self._claimed: dict[str, list[int]] = {}
        uuids = [_UUID.format(10_000 + number) for number in range(case["request"]["count"])]
        self._uuid_of: dict[str, str] = {}
        states = [self.host_state(number, host) for number, host in enumerate(case["hosts"])]
        return _Manager(hosts), states, self.spec(case, uuids), uuids

    # Placement's part, by its rule ------------------------------------------------------------------------------

    def _fits(self, state: t.Any, spec: t.Any, case: cases.Case) -> bool:
        """Tell whether Placement names this host: capacity, traits, zone; and whether the API let the request in."""
        if not self._api_takes(case):
            return False
        host = next(hypervisor for hypervisor in case["hosts"] if hypervisor["name"] == state.host)
        request_group = utils.ResourceRequest.from_request_spec(spec).get_request_group(None)
        claimed = self._claimed.get(state.host, [0, 0, 0])
        for number, (resource, total, reserved, used, ratio) in enumerate(
            (
                ("VCPU", "vcpus", "reserved_vcpus", "vcpus_used", "cpu_ratio"),
                ("MEMORY_MB", "memory_mb", "reserved_memory_mb", "memory_mb_used", "ram_ratio"),
                ("DISK_GB", "disk_gb", "reserved_disk_gb", "disk_gb_used", "disk_ratio"),
            )
        ):
            amount = request_group.resources.get(resource, 0)
            room = (host[total] - host[reserved]) * host[ratio]  # placement/objects/resource_provider.py
            if amount and (host[used] + claimed[number] + amount > room or amount > host[total]):  # max_unit is total
                return False
        traits = set(host["traits"])
        if request_group.required_traits - traits or request_group.forbidden_traits & traits:
            return False
        destination = spec.requested_destination
        members = {_aggregate_uuid(aggregate["name"]) for aggregate in host["aggregates"]}
        required = destination.aggregates if destination and "aggregates" in destination else None
        return all(members & set(names.split(",")) for names in required or [])

    def _claim(self, state: t.Any, spec: t.Any) -> None:
        resources = utils.ResourceRequest.from_request_spec(spec).get_request_group(None).resources
        sums = self._claimed.setdefault(state.host, [0, 0, 0])
        for number, resource in enumerate(("VCPU", "MEMORY_MB", "DISK_GB")):
            sums[number] += resources.get(resource, 0)

    def _api_takes(self, case: cases.Case) -> bool:
        """nova-api refuses a flavor below the image's minimum, and a zone without hosts, before any scheduling."""
        zone = case["request"]["availability_zone"]
        if zone and all(zone != host["zone"] for host in case["hosts"]):
            return False
        image, flavor = case["request"]["image"], case["request"]["flavor"]
        known = {
            "id": _IMAGES[image["id"]],
            "status": "active",
            "size": 0,
            "properties": {},
            "min_ram": image["min_ram_mb"],
            "min_disk": image["min_disk_gb"],
        }
        try:
            compute_api.API._validate_flavor_image_nostatus(
                self.context, known, _flavor(flavor), None, validate_numa=False, validate_pci=False
            )
        except (exception.FlavorMemoryTooSmall, exception.FlavorDiskTooSmall):
            return False
        return True

    # plain data -> Nova's objects -------------------------------------------------------------------------------

    def configure(self, options: dict[str, t.Any]) -> None:
        for name, group in self._overridden:
            CONF.clear_override(name, group)
        self._overridden = []
        if "enabled_filters" in options:
            filters = [cases.FILTERS[name] for name in options["enabled_filters"]]
            self._override("enabled_filters", filters, "filter_scheduler")
        self._override("track_instance_changes", False, "filter_scheduler")
        for name, value in options.items():
            if name == "enabled_filters":
                continue
            if name == "metrics_weight_setting":
                settings = [f"{metric}={ratio}" for metric, ratio in value.items()]
                self._override("weight_setting", settings, "metrics")
            elif name == "isolated_images":
                self._override(name, [_IMAGES[image] for image in value], "filter_scheduler")
            elif name.startswith("metrics_"):
                self._override(name.split("_", 1)[1], value, "metrics")
            else:
                self._override(name, value, "filter_scheduler")
        # the draw among the best is not Nova's to decide: both sides take the last of the subset
        manager.random = mock.Mock(wraps=random, choice=lambda best: best[-1])

    def _override(self, name: str, value: t.Any, group: str) -> None:
        CONF.set_override(name, value, group)
        self._overridden.append((name, group))

    def host_state(self, number: int, host: dict[str, t.Any]) -> t.Any:
        now = timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)
        facts = host["facts"]
        free_disk_gb = host["disk_gb"] - host["reserved_disk_gb"] - host["disk_gb_used"]
        node = objects.ComputeNode(
            uuid=_UUID.format(number),
            host=host["name"],
            hypervisor_hostname=host["name"],
            vcpus=host["vcpus"],
            memory_mb=host["memory_mb"],
            local_gb=host["disk_gb"],
            # what is reserved counts as used (compute/resource_tracker.py)
            vcpus_used=host["vcpus_used"] + host["reserved_vcpus"],
            memory_mb_used=host["memory_mb_used"] + host["reserved_memory_mb"],
            local_gb_used=host["disk_gb_used"] + host["reserved_disk_gb"],
            free_ram_mb=host["memory_mb"] - host["reserved_memory_mb"] - host["memory_mb_used"],
            free_disk_gb=free_disk_gb,
            disk_available_least=None,
            hypervisor_type=facts["hypervisor_type"],
            hypervisor_version=facts["hypervisor_version"],
            cpu_info=json.dumps(facts["cpu_info"]),
            host_ip=host["address"],
            supported_hv_specs=[objects.HVSpec.from_list(instance) for instance in facts["supported_instances"]],
            metrics=json.dumps(
                [
                    {"name": name, "value": value, "timestamp": now.isoformat(), "source": "test"}
                    for name, value in host["metrics"].items()
                ]
            ),
            numa_topology=None,
            pci_device_pools=None,
            cpu_allocation_ratio=host["cpu_ratio"],
            ram_allocation_ratio=host["ram_ratio"],
            disk_allocation_ratio=host["disk_ratio"],
            updated_at=now,
            stats={
                "num_instances": str(host["num_instances"]),
                "io_workload": str(host["num_io_ops"]),
                "failed_builds": str(host["failed_builds"]),
                "rack": facts["rack"],
                "grade": facts["grade"],
            },
        )
        last_seen = now if host["up"] else now - datetime.timedelta(hours=1)
        service = {
            "host": host["name"],
            "binary": "nova-compute",
            "topic": "compute",
            "report_count": 1,
            "disabled": not host["enabled"],
            "disabled_reason": None,
            "forced_down": False,
            "last_seen_up": last_seen,
            "updated_at": last_seen,
            "created_at": last_seen,
        }
        aggregates = [
            objects.Aggregate(
                id=index,
                uuid=_aggregate_uuid(aggregate["name"]),
                name=aggregate["name"],
                hosts=[],
                metadata=cases.metadata_of(aggregate),
            )
            for index, aggregate in enumerate(host["aggregates"])
        ]
        instances = {}
        for uuid in host["instances"]:
            instances[_instance_uuid(uuid)] = objects.Instance(uuid=_instance_uuid(uuid))
        state = host_manager.HostState(host["name"], host["name"], _UUID.format(0))
        state.update(node, service, aggregates, instances)
        return state

    def spec(self, case: cases.Case, uuids: list[str]) -> t.Any:
        request = case["request"]
        image = request["image"]
        spec = objects.RequestSpec(
            context=self.context,
            instance_uuid=uuids[0],
            project_id=request["project_id"],
            num_instances=len(uuids),
            flavor=_flavor(request["flavor"]),
            image=objects.ImageMeta.from_dict({"id": _IMAGES[image["id"]], "properties": dict(image["properties"])}),
            availability_zone=request["availability_zone"],
            ignore_hosts=list(request["ignore_hosts"]) or None,
            force_hosts=None,
            force_nodes=None,
            requested_destination=None,
            requested_resources=[],
            request_level_params=objects.RequestLevelParams(),
            scheduler_hints={
                name: [_instance_uuid(value) if value.startswith("instance-") else value for value in values]
                for name, values in request["hints"].items()
            },
            instance_group=None,
            pci_requests=None,
            numa_topology=None,
            is_bfv=False,
            limits=objects.SchedulerLimits(),
        )
        if request["requested_host"]:
            spec.requested_destination = objects.Destination(
                host=request["requested_host"], node=request["requested_host"]
            )
        if request["group"]:
            group = request["group"]
            members = [_instance_uuid(uuid) for uuid in group["members"]]
            spec.instance_group = objects.InstanceGroup(
                uuid=_UUID.format(1),
                policy=group["policy"],
                policies=[group["policy"]],
                rules={"max_server_per_host": group["max_server_per_host"]}
                if group["policy"] == "anti-affinity"
                else {},
                members=[*members, *uuids],  # the API has added the new ones already
                hosts=sorted(set(group["members"].values())),
            )
        zones = {
            aggregate["name"]
            for host in case["hosts"]
            for aggregate in host["aggregates"]
            if aggregate["zone"] and aggregate["zone"] == request["availability_zone"]
        }
        zone_aggregates = [objects.Aggregate(uuid=_aggregate_uuid(name)) for name in sorted(zones)]
        with mock.patch.object(objects.AggregateList, "get_by_metadata", return_value=zone_aggregates):
            request_filter.map_az_to_placement_aggregate(self.context, spec)
        return spec


def _flavor(flavor: dict[str, t.Any]) -> t.Any:
    return objects.Flavor(
        flavorid=flavor["name"],
        name=flavor["name"],
        vcpus=flavor["vcpus"],
        memory_mb=flavor["memory_mb"],
        root_gb=flavor["root_gb"],
        ephemeral_gb=flavor["ephemeral_gb"],
        swap=flavor["swap_mb"],
        extra_specs=dict(flavor["extra_specs"]),
    )


def _aggregate_uuid(name: str) -> str:
    return _UUID.format(int.from_bytes(name.encode()[-4:], "big"))


def _instance_uuid(name: str) -> str:
    numbers = [int(part) for part in name.split("-")[1:] if part.isdigit()]
    return _UUID.format(100_000 + sum(number * 100**place for place, number in enumerate(numbers)))


def uuid_of(number: int) -> str:
    return _UUID.format(10_000 + number)
