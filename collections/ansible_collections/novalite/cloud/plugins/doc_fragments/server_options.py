# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

from ansible.module_utils.common.yaml import yaml_load

from ..module_utils._rules.server_options import SERVER, documented

# The descriptions of the options that are declared there
_TEXTS = r"""
name:
  - Name of the server, unique in its project. It must be a host name label after RFC 1123, of 1 to 63 letters,
    digits and inner hyphens.
count:
  - How many servers of this kind. V(1) is named O(servers[].name) itself, more are named with V(-1), V(-2) and
    so on behind it. A whole number of at least V(1), which is also the default; V(1000) in one call at most.
  - With O(state=absent), the same names are removed.
flavor: Name of the flavor. Required for a server that does not exist yet.
image: Name of the image. Required for a server that does not exist yet.
key: Name of the key pair whose public key the server gets.
networks:
  - The server's networks, one interface for each, in this order. Each item is the name of a network, or a
    dictionary of C(name) and C(fixed_ip), the IPv4 address that the interface shall have.
  - Defaults to the only network that the project sees. It is an error if there are several.
security_groups:
  - Names of the server's security groups. Defaults to the group V(default), which is made if it is missing.
availability_zone: Availability zone that the server shall run in. Any zone if it is left out.
metadata: The owner's own notes on the server, keys and texts of up to 255 characters.
hostname:
  - Host name label of the server, stored in lower case. Defaults to the name. With more than one server, it
    gets the same numbers as the name.
user_data:
  - What cloud-init and the like in the guest shall read and do, as O(servers[].user_data_encoding) says.
  - The guest gets the bytes of the text, those of a file that is not UTF-8, too, as the lookup plug-in
    P(ansible.builtin.file#lookup) reads it. That cuts off white space at the end unless it is told
    C(rstrip=false).
  - At most 65535 bytes in base64. The guest finds it at the metadata service and on its config drive. It is
    shown to nobody else.
user_data_encoding: Whether O(servers[].user_data) is the text itself, the default, or V(base64).
config_drive:
  - Whether the server gets a config drive, a small CD with its metadata and user data.
  - It always does where the image's property C(os_config_drive) (or C(img_config_drive)) is V(mandatory). The
    property C(os_config_drive_format) chooses between V(config-2), OpenStack's, and V(nocloud).
  - So it does where the image has not C(os_host_mount=yes), which M(novalite.cloud.image) gives to the
    operator's.
  - A server that starts from a volume gets one unless this is V(false), since nothing is injected into volumes.
files:
  - Files that the guest shall have, owned by root. Quotas allow 5 of 10240 bytes each if nothing else is set.
files.path: The absolute path in the guest.
files.content: The content. It is shown to nobody.
files.encoding: What O(servers[].files[].content) is.
admin_password:
  - The password of the image's administrator, C(root) unless its property C(os_admin_user) says otherwise.
  - Only its SHA-512 crypt hash is recorded. Without it that user's password stays as the image has it.
volumes:
  - Volumes that it gets. Of a server that is there they are not looked at.
volumes.volume: Name of a volume that there is. If it is left out, one is made.
volumes.size: GiB of the one that is made.
volumes.type: Volume type of the one that is made.
volumes.snapshot: Snapshot that it is made of. It is empty if there is none.
volumes.boot:
  - The server starts from it, without a root disk of its own. One that is made of no snapshot is then made
    of the server's image.
volumes.delete_on_termination: It goes with the server.
volumes.device: Its name in the guest, such as V(vdb).
hints:
  - Hints for the scheduler, in Nova's terms. Whatever is asked for by name must exist.
  - C(group) is the name or UUID of the M(novalite.cloud.server_group) that the server joins.
  - C(same_host) and C(different_host) are names or UUIDs of servers of the project whose hosts are wanted, or
    not. They may be servers of this same call that stand before this one.
  - C(build_near_host_ip) and C(cidr) (V(/24) when left out) ask for a host whose address is in that network.
  - C(query) is a condition for Nova's JSON filter, a JSON list such as C([">=", "$free_ram_mb", 1024]).
  - C(host) is the name of the only compute host that will do.
  - Any other hint is handed on for filters and weighers of your own.
requirements:
  - Which hosts will do, as an expression over what is known about a host, for example
    V(free_ram_mb >= 4096 and arch == "x86_64").
rank:
  - Which of them first, as an expression whose higher value wins, for example V(-num_instances). It takes
    effect with the choice V(filter_scheduler) of M(novalite.cloud.scheduler).
"""


class ModuleDocFragment:
    # The options of one server; annotated, since yamllint reads plain assignments only
    DOCUMENTATION: str = json.dumps({"options": {"servers": {"suboptions": documented(SERVER, yaml_load(_TEXTS))}}})
