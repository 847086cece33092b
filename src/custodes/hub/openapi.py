"""The OpenAPI document of /api, made from the table of endpoints and the schemas of their Structs."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import custodes
from custodes.hub.answers import json_answer
from custodes.hub.documents import ErrorAnswer
from custodes.hub.endpoints import ENDPOINTS, Endpoint

PATH = "/api/openapi.json"
_JSON = "application/json"


@cache
def document() -> dict[str, Any]:
    kinds = [kind for endpoint in ENDPOINTS for kind in (endpoint.answer, endpoint.body) if kind is not None]
    unique = list(dict.fromkeys((*kinds, ErrorAnswer)))
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    by_kind = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Custodes Hub", "version": custodes.__version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[type, dict[str, Any]]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    parameters += [
        {
            "name": parameter.name,
            "in": "query",
            "required": parameter.required,
            "description": parameter.description,
            "schema": {"type": parameter.kind},
        }
        for parameter in endpoint.parameters
    ]
    if endpoint.stream:
        content: dict[str, Any] = {"text/event-stream": {"schema": {"type": "string"}}}
    else:
        content = {_JSON: {"schema": schemas[endpoint.answer] if endpoint.answer else {}}}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.handler.__name__,
        "parameters": parameters,
        "responses": {
            "200": {"description": "It is so.", "content": content},
            "default": {"description": "Why not.", "content": {_JSON: {"schema": schemas[ErrorAnswer]}}},
        },
    }
    if endpoint.body is not None:
        found["requestBody"] = {"required": True, "content": {_JSON: {"schema": schemas[endpoint.body]}}}
    if endpoint.method != "GET":
        found["security"] = [{"csrf": []}, {"token": []}]
    return found


async def openapi(_: Request) -> Response:
    return json_answer(document())


ROUTE = Route(PATH, openapi)
