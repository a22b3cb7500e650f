# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What every module that asks the scheduler takes
    DOCUMENTATION = r"""
options:
  options:
    description:
      - How hosts are filtered and weighed, under the names that Nova's configuration has for it.
      - The metadata of an aggregate override each multiplier for its hosts, under the multiplier's name.
    type: dict
    default: {}
    suboptions:
      enabled_filters:
        description:
          - Names of the filters to use, those of C(plugin_paths) among them. Nova's class names will do, such as
            V(RamFilter) or V(nova.scheduler.filters.ram_filter.RamFilter).
          - V(retry), V(requested_host), V(compute), V(ranges), V(availability_zone), V(traits),
            V(compute_capabilities), V(image_properties), V(hardware), V(same_host), V(different_host),
            V(simple_cidr_affinity), V(requirements), V(server_group_anti_affinity),
            V(server_group_affinity), V(vcpu), V(ram) and V(disk) when left out.
        type: list
        elements: str
      enabled_weighers:
        description:
          - Names of the weighers to use, those of C(plugin_paths) among them. Nova's class names will do, such as
            V(RAMWeigher). All that novalite has when left out.
        type: list
        elements: str
      plugin_paths:
        description:
          - Files, or directories of files, on the controller that hold filters and weighers of your own.
        type: list
        elements: path
      host_subset_size:
        description:
          - Draw among so many of the best hosts. V(1), which takes the best, when left out.
        type: int
      shuffle_best_same_weighed_hosts:
        description:
          - Draw among the hosts that are as good as the best. V(false), the first by name, when left out.
        type: bool
      max_io_ops_per_host:
        description:
          - With the filter V(io_ops), how many builds may be under way on a host. V(8) when left out.
        type: int
      max_instances_per_host:
        description:
          - With the filter V(num_instances), how many instances a host may have. V(50) when left out.
        type: int
      isolated_images:
        description:
          - With the filter V(isolated_hosts), ids of the images that run on O(options.isolated_hosts) only.
        type: list
        elements: str
      isolated_hosts:
        description:
          - With the filter V(isolated_hosts), names of the hosts for them.
        type: list
        elements: str
      restrict_isolated_hosts_to_isolated_images:
        description:
          - Whether these hosts take no other images. V(true) when left out.
        type: bool
      aggregate_image_properties_isolation_namespace:
        description:
          - With the filter V(aggregate_image_properties_isolation), the prefix of the metadata that count.
            All of them when left out.
        type: str
      aggregate_image_properties_isolation_separator:
        description:
          - What stands between that prefix and the property. V(.) when left out.
        type: str
      cpu_weight_multiplier:
        description:
          - How much free virtual CPUs count. V(1.0) when left out. Less than zero packs instead of
            spreading, here and below.
        type: float
      ram_weight_multiplier:
        description:
          - How much free memory counts. V(1.0) when left out.
        type: float
      disk_weight_multiplier:
        description:
          - How much free disk counts. V(1.0) when left out.
        type: float
      io_ops_weight_multiplier:
        description:
          - How much builds that are under way count. V(-1.0) when left out.
        type: float
      build_failure_weight_multiplier:
        description:
          - How much builds that failed since the last that succeeded count against a host. V(1000000.0)
            when left out.
        type: float
      soft_affinity_weight_multiplier:
        description:
          - How much servers of the same group count for a host, with the policy soft-affinity. V(1.0) when
            left out.
        type: float
      soft_anti_affinity_weight_multiplier:
        description:
          - How much they count against it, with soft-anti-affinity. V(1.0) when left out.
        type: float
      num_instances_weight_multiplier:
        description:
          - How much the number of instances counts. V(0.0) when left out.
        type: float
      hypervisor_version_weight_multiplier:
        description:
          - How much a newer hypervisor counts. V(1.0) when left out.
        type: float
      metrics_weight_multiplier:
        description:
          - How much the metrics count. V(1.0) when left out.
        type: float
      pci_weight_multiplier:
        description:
          - How much it counts that few PCI devices of a host are free. V(1.0) when left out.
        type: float
      rank_weight_multiplier:
        description:
          - How much the rank counts that a request asks for. V(1000000.0), before all else, when left out.
        type: float
      weight_multipliers:
        description:
          - How much each weigher of your own counts, by its name. What its file says when left out.
        type: dict
      metrics_weight_setting:
        description:
          - Which metrics count, each with its ratio. None when left out.
        type: dict
      metrics_required:
        description:
          - Whether a host without such a metric is an error. V(true) when left out.
        type: bool
      metrics_weight_of_unavailable:
        description:
          - The weight of such a host otherwise. V(-10000.0) when left out.
        type: float
  limit_to:
    description: Names of the only compute hosts to consider. All that the ledger knows, when left out.
    type: list
    elements: str
"""

    # What every module that places instances takes
    CHOICE = r"""
options:
  compute_hosts:
    description:
      - What compute hosts have just reported, as returned by M(novalite.cloud.compute_host).
      - It is recorded before the choice. Hosts that are not listed are known from the ledger.
    type: list
    elements: dict
  choice:
    description:
      - How to choose among the hosts that passed all filters.
      - V(filter_scheduler) takes the highest sum of weights, as Nova does. Each weigher's weights are first brought to
        V(0) for the worst and V(1) for the best of these hosts, then multiplied.
      - V(simple) takes the host with the fewest cores in use.
      - V(chance) takes any.
      - V(zone) spreads over availability zones, then takes the host with the fewest cores in use.
    type: str
    choices: [filter_scheduler, simple, chance, zone]
    default: filter_scheduler
  all_or_nothing:
    description: Whether one instance without a host gives up all others, as in Nova.
    type: bool
    default: true
  reservations:
    description:
      - Which of the instances were asked for together, when they come from several requests, as UUID and any text that
        they have in common. O(all_or_nothing) then holds for each request by itself, and what is given up takes no
        room from the others. Without it, all are of one request.
    type: dict
  explain_all:
    description:
      - Whether the explanations name every host that was weighed and every one that a filter removed, however many
        there are. What is recorded with the instance stays bounded.
    type: bool
    default: false
  service_down_time:
    description: Seconds after which a compute host that has not reported counts as down.
    type: int
    default: 60
  seen_hosts:
    description: Compute hosts that answered earlier in this run. They count as up, however long ago that was.
    type: list
    elements: str
    default: []
  max_attempts:
    description:
      - How many hosts to try for one instance in all.
      - One less is the number of alternates that are returned for a new instance.
    type: int
    default: 3
"""
