"""A capability's API gets its services by their type: `wiring` says what there is, a route names what it needs."""

from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import FastAPI, Request

T = TypeVar("T")


def install(app: FastAPI, services: Mapping[type[Any], Any]) -> None:
    app.state.provided = services


def get(request: Request, kind: type[T]) -> T:
    found: T = request.app.state.provided[kind]
    return found
