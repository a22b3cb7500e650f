# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a server, declared once for all who take it (options.py): module `server`, and with it the variables of
playbooks, /v1, and a site's document, for servers and profiles.

Limits are those of whoever records the server, so that a door refuses early what could not be carried out.
"""

from __future__ import annotations

from . import ha_wishes
from .options import A_NAME, MAX_TEXT, NAME, Limits, Option, Schema, closed

MAX_SERVERS = 1000  # in one call; a project's quota is usually far below
MAX_NICS = 10
MAX_GROUPS = 10
MAX_VOLUMES = 20  # its PCI slots bound them
MAX_HINTS = 4096  # characters of JSON (CVE-2012-3371: a long list of hints stalled the scheduler)
MAX_EXPRESSION = 1024  # characters
LABEL: Limits = (1, 63)  # RFC 1035
EXPRESSION: Limits = (1, MAX_EXPRESSION)

HINTS = (
    Option("group", limits=NAME),
    Option("same_host", limits=NAME, lists=100),
    Option("different_host", limits=NAME, lists=100),
    Option("build_near_host_ip", limits=(None, 45)),
    Option("cidr", limits=(None, 4)),
    # its depth, its operators and its length: _scheduling, when the request is recorded
    Option("query", "raw", (None, MAX_HINTS)),
)
FILE = (
    Option("path", required=True),
    Option("content", required=True, no_log=True),
    Option("encoding", choices=("text", "base64"), default="text"),
)
NETWORK = (Option("name", limits=NAME, required=True), Option("fixed_ip", limits=NAME))
VOLUME = (
    Option("volume", limits=NAME, description="One that there is."),
    Option("size", "int", (1, 2**31 - 1), "GiB of one that is made."),
    Option("type", limits=NAME),
    Option("snapshot", limits=NAME),
    Option("boot", "bool"),
    Option("delete_on_termination", "bool"),
    Option("device", limits=(1, 32)),
)
SERVER = (
    Option("name", limits=LABEL, required=True),
    # the module takes `-e count=3`, which arrives as text
    Option("count", "int", (1, MAX_SERVERS), "2 and more are named name-1, name-2 and so on; 0 is none.", module="raw"),
    Option("flavor", limits=NAME, description="Name of the flavor. Another one needs a new instance."),
    Option("image", limits=NAME, description="Name or id of the image. Another one needs a new instance."),
    Option("key", limits=NAME, description="Name of the key pair.", no_log=False),
    Option("networks", "list", (1, MAX_NICS), "One interface for each, in this order.", "raw", NETWORK),
    Option("security_groups", "list", (None, MAX_GROUPS), "All groups that it is in; changed while it runs."),
    Option("availability_zone", limits=NAME),
    Option("metadata", "dict", (None, MAX_TEXT), "Keys that are not named stay as they are; changed while it runs."),
    Option("hostname", limits=LABEL),
    Option("user_data", no_log=True),
    Option("user_data_encoding", choices=("text", "base64"), description="How user_data is given: text by default."),
    Option("config_drive", "bool"),
    Option("files", "list", elements="dict", suboptions=FILE),
    Option("admin_password", description="Counts when the server is made.", no_log=True),
    Option("volumes", "list", (None, MAX_VOLUMES), "Given when it is built; not looked at afterwards.", "dict", VOLUME),
    Option("hints", "dict", description="For the scheduler, when the server is made.", suboptions=HINTS),
    Option("requirements", limits=EXPRESSION),
    Option("rank", limits=EXPRESSION),
    Option("ha", "bool", description="Run it again on another host when its own dies."),
    Option("ha_priority", "int", (ha_wishes.LEAST, ha_wishes.MOST), "The highest first."),
    Option("ha_rebuild", "bool", description="Anew from its image, where its disk dies with its host."),
)
# Their descriptions, as documentation has them
TEXTS = r"""
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
ha:
  - Whether the server runs again on another host when its own is proven dead, as C(watch.yml) does it.
  - Left out, its flavor's extra spec C(novalite:ha) decides, then its project.
  - A server that is there keeps what it has.
  - It is refused for a server whose disk dies with its host, unless O(servers[].ha_rebuild) is set.
ha_priority:
  - Which servers of a dead host get places first, the highest number, from V(-100) to V(100). V(0) by default.
  - Left out, the extra spec C(novalite:ha_priority) decides, then the project.
ha_rebuild:
  - Whether a new disk made of its image will do, where its own dies with its host. What the guest wrote is lost.
  - Left out, the extra spec C(novalite:ha_rebuild) decides, then the project.
"""


def v1_schema() -> Schema:
    """A server in a job of /v1: without what is secret, for the variables of a job are kept."""
    return closed([option for option in SERVER if not option.secret], site=False)


def _or_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


def stack_schemas() -> dict[str, Schema]:
    """`profile` and `server` of a site's document. null takes away what a profile said."""
    profile = {
        "description": "One profile, or several of which later ones win.",
        "anyOf": [A_NAME.schema(True), {"type": "array", "items": A_NAME.schema(True), "minItems": 1}],
    }
    options = closed(SERVER, site=True)["properties"]
    own = {"name": options.pop("name"), "count": {**options.pop("count"), "minimum": 0}}
    shared = {name: _or_null(schema) for name, schema in options.items()}
    of_profile = {"profile": profile, **shared}
    return {
        "profile": {"type": ["object", "null"], "additionalProperties": False, "properties": of_profile},
        "server": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                **own,
                "state": {"$ref": "#/$defs/state"},
                **{name: {"$ref": f"#/$defs/profile/properties/{name}"} for name in of_profile},
            },
        },
    }
