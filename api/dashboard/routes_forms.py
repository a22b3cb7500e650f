# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The routes of the forms that make, change and delete things: for each a page, and what it sends."""

from __future__ import annotations

from flask import redirect, render_template
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call

from ..web.dialects import NeutronError
from ..web.errors import LATER, message_of, status_of
from ..web.ledger import reading_ledger, writing_ledger
from ..work.calls import calling
from ..work.refusals import refusals_as_bad_requests
from .forms import NOTHING, Form, Thing
from .noun_forms import FORMS
from .session import pages


def _send(form: Form, number: str | None) -> ResponseReturnValue:
    with reading_ledger() as connection:
        thing = _thing(form, calling(connection), number)
    try:
        with reading_ledger() as connection:
            values = form.values(calling(connection), thing)
        prepared = form.prepare(values)
        with writing_ledger() as connection, refusals_as_bad_requests():
            secret = form.do(calling(connection), thing, prepared)
    except (NovaliteError, NeutronError) as error:
        if isinstance(error, LATER):
            raise
        status = status_of(error)
        return _page(form, number, message_of(error, status)), status
    back = form.shows(number)
    if secret is not None:
        return render_template("pages/secret.html", secret=secret, back=back)
    return redirect(back, 303)


def _page(form: Form, number: str | None, message: str | None = None) -> str:
    with reading_ledger() as connection:
        call = calling(connection)
        thing = _thing(form, call, number)
        return render_template(
            "pages/form.html",
            form=form,
            thing=thing,
            shown=form.shown(call, thing, sent=message is not None),
            goes=form.goes(call, thing) if form.goes is not None else None,
            message=message,
            back=form.shows(number),
            path=form.url(number),
        )


def _thing(form: Form, call: Call, number: str | None) -> Thing:
    return NOTHING if form.find is None or number is None else form.find(call, number)


def _put(form: Form) -> None:
    @pages.get(form.path, form.entry, endpoint=f"show_{form.endpoint}")
    def show(number: str | None = None) -> str:
        return _page(form, number)

    @pages.post(form.path, form.entry, endpoint=f"send_{form.endpoint}")
    def send(number: str | None = None) -> ResponseReturnValue:
        return _send(form, number)


for _form in FORMS:
    _put(_form)
