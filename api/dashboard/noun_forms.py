# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forms of key pairs and volumes, and all forms that there are."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import images_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import one_volume

from ..web import policy
from ..web.bodies import the_one
from ..web.context import current
from ..web.errors import as_bad_request
from ..work import keys
from ..work.images import offered as offered_images
from .forms import DESCRIPTION, NAME, Choice, Field, Form, Link, Secret, Thing, Values, forms_of
from .identity_forms import IDENTITY_FORMS
from .network_forms import FLOATING_FORMS, GROUP_FORMS, NETWORK_FORMS
from .server_forms import SERVER_FORMS

# --- Key pairs ------------------------------------------------------------------------------------------------------


def _key(call: Call, number: str) -> Thing:
    missing = NotFoundError(f"Key pair {number[:64]} could not be found.")
    row = the_one(keypairs_of(call.connection, call.project, call.user_id), "name", number, missing)
    return Thing(row["name"], row)


def _import_key(call: Call, _thing: Thing, values: Values) -> None:
    keypairs.create(call, current().user_id, values["name"], values["public_key"])


def _with_new_key(values: Values) -> Values:
    with as_bad_request():
        keypairs.check_name(values["name"])
    _key, private, public = keys.new_rsa_key("generated-by-novalite")
    return {**values, "private": private, "public": public}


def _generate_key(call: Call, _thing: Thing, values: Values) -> Secret:
    keypairs.create(call, current().user_id, values["name"], values["public"])
    note = "Keep it now: it is shown once, and kept nowhere here."
    return Secret(f"Private key of {values['name']}", values["private"], note)


def _delete_key(call: Call, thing: Thing, _values: Values) -> None:
    keypairs.delete(call, current().user_id, thing.name)


KEY_FORMS = forms_of(
    "compute:keypairs:write",
    Form(
        "/keys/import",
        "Import a key…",
        "Import a key",
        _import_key,
        (NAME, Field("public_key", "Public key", "lines", "(a line as in ~/.ssh/id_ed25519.pub)", required=True)),
    ),
    Form("/keys/generate", "Generate a key…", "Generate a key", _generate_key, (NAME,), prepare=_with_new_key),
    Form(
        "/keys/<number>/delete",
        "Delete…",
        "Delete the key",
        _delete_key,
        find=_key,
        goes=lambda _call, thing: ["The key for launches to come. Instances that have it keep it."],
        fits=lambda key: bool(key["user_id"]) or policy.allowed("compute:keypairs:manage"),
    ),
)


# --- Volumes --------------------------------------------------------------------------------------------------------


def _volume(call: Call, number: str) -> Thing:
    row = one_volume(call.connection, number, current().reach)
    return Thing(row.display_name or row.name, row)


def _create_volume(call: Call, _thing: Thing, values: Values) -> None:
    volumes.create(
        call,
        {
            "size_gb": values["size"],
            "name": values["name"],
            "description": values["description"],
            "type": values["type"] or None,
            "image": values["image"] or None,
        },
    )


def _types(call: Call, _thing: Thing) -> list[Choice]:
    seen = volume_type_records.types_seen(call.connection, call.project, call.permits("volume:private_types"))
    return [(each.id, each.name) for each in seen]


def _images(call: Call, _thing: Thing) -> list[Choice]:
    images = offered_images(images_seen(call.connection, call.project), call.project)
    return sorted((image["id"], image["name"] or image["id"]) for image in images if image["status"] == "active")


def _goes_with_volume(_call: Call, thing: Thing) -> list[str]:
    return [f"Its {thing.record.size_gb} GiB, with all that is on it.", "It is refused while it has snapshots."]


def _extend_volume(call: Call, thing: Thing, values: Values) -> None:
    volumes.extend(call, thing.record.id, values["size"], project_id=current().reach)


def _delete_volume(call: Call, thing: Thing, _values: Values) -> None:
    volumes.delete(call, thing.record.id, project_id=current().reach)


SIZE = Field("size", "Size in GiB", "number", required=True, least=1)
VOLUME_FORMS = forms_of(
    "volume:write",
    Form(
        "/volumes/new",
        "Create a volume…",
        "Create a volume",
        _create_volume,
        (
            Field("name", "Name"),
            SIZE,
            Field("type", "Type", "choice", options=_types, none="The default"),
            Field("image", "Made of an image", "choice", options=_images, none="Empty"),
            DESCRIPTION,
        ),
    ),
    Form("/volumes/<number>/extend", "Extend…", "Extend the volume", _extend_volume, (SIZE,), find=_volume),
    Form(
        "/volumes/<number>/delete",
        "Delete…",
        "Delete the volume",
        _delete_volume,
        find=_volume,
        goes=_goes_with_volume,
        fits=lambda volume: not volume.attachments,
    ),
)


FORMS = (*SERVER_FORMS, *NETWORK_FORMS, *GROUP_FORMS, *FLOATING_FORMS, *KEY_FORMS, *VOLUME_FORMS, *IDENTITY_FORMS)


def links(call: Call, noun: str, number: str | None = None, record: object = None) -> list[Link]:
    """Return the ways to the forms of `noun` that the caller may send: those to make one, or those about one."""
    return [
        Link(form.link, form.url(number), form.goes is not None)
        for form in FORMS
        if form.noun == noun
        and (form.find is None) == (number is None)
        and call.permits(form.entry)
        and (number is None or form.fits(record))
    ]
