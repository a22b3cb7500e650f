# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The OpenAPI 3.1 document of the native part, made of the same declarations that route and validate."""

from __future__ import annotations

import functools

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from ..web import policy
from . import problems, schemas, schemas_backups, streams
from .operations import OPERATIONS, Operation
from .schemas import reference

Document = JsonObject

SECURITY = "token"


@Operation("GET", "/openapi.json", "v1:openapi", "This document", {200: "Document"})
def show_document() -> ResponseReturnValue:
    return document()


@functools.cache
def document() -> Document:
    paths: Document = {}
    for endpoint in OPERATIONS:
        paths.setdefault(f"/v1{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "novalite",
            "version": "1",
            "description": "Jobs, hosts and plans. Get a token at /identity/v3/auth/tokens.",
            "license": {"name": "GPL-3.0-or-later", "identifier": "GPL-3.0-or-later"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {**schemas.SCHEMAS, **schemas_backups.SCHEMAS},
            "securitySchemes": {SECURITY: {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
        },
        "security": [{SECURITY: []}],
    }


def _operation(endpoint: Operation) -> Document:
    role = policy.POLICY[endpoint.action]
    described: Document = {"operationId": endpoint.name, "summary": endpoint.summary}
    description = endpoint.description + ("" if role == "public" else f" Role: {role}.")
    if description:
        described["description"] = description.strip()
    if role == "public":
        described["security"] = []
    if parameters := _parameters(endpoint):
        described["parameters"] = parameters
    if endpoint.body is not None:
        schema = endpoint.documented_body or endpoint.body
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    described["responses"] = {str(status): _answer(endpoint, name) for status, name in endpoint.answers.items()}
    for status, description in _refusals(endpoint, role).items():
        described["responses"][str(status)] = {
            "description": description,
            "content": {problems.CONTENT_TYPE: {"schema": reference("Problem")}},
        }
    return described


def _answer(endpoint: Operation, schema: str) -> Document:
    content: Document = {"application/json": {"schema": reference(schema)}}
    if endpoint.stream:
        content[streams.CONTENT_TYPE] = {"schema": {"type": "string"}}
    answer: Document = {"description": endpoint.summary, "content": content}
    if endpoint.answer_headers:
        answer["headers"] = {
            name: {"description": header, "required": True, "schema": {"type": "string"}}
            for name, header in endpoint.answer_headers.items()
        }
    return answer


def _refusals(endpoint: Operation, role: str) -> dict[int, str]:
    answers = {400: "something in the request cannot be; the detail names it"}
    if role != "public":
        answers |= {401: "no valid token", 403: "the token's roles do not allow it, or a quota does not"}
    if endpoint.parameters or endpoint.body is not None:
        answers[404] = "there is no such thing, or it is not the caller's"
    elif endpoint.query is not None:
        answers[404] = "there is no such marker"
    if endpoint.conflicts:
        answers[409] = "it cannot be done now"
    if endpoint.body is not None:
        answers[413] = "the body is too long"
    if endpoint.stream:
        answers[429] = "too many streams at once"
    return answers


def _parameters(endpoint: Operation) -> list[Document]:
    text: Document = {"type": "string"}
    parameters: list[Document] = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in endpoint.parameters
    ]
    for name, schema in (endpoint.query or {}).get("properties", {}).items():
        described = {key: value for key, value in schema.items() if key == "description"}
        bare = {key: value for key, value in schema.items() if key != "description"}
        parameters.append({"name": name, "in": "query", **described, "schema": bare})
    return parameters + [{"name": name, "in": "header", "schema": schema} for name, schema in endpoint.headers.items()]
