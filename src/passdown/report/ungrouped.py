"""The reserved, read-only project of every scope with a committed handoff that belongs to no project. Pure.

It makes a committed handoff visible at once, without any registration: its descriptors are made up on reading, nothing
of it is stored, and its versions are 0 because the catalog never changed for it.
"""

from __future__ import annotations

from passdown.report.catalog_rules import Descriptor
from passdown.report.models import (
    DEFAULT_LOCALE,
    PROJECT_SCHEMA,
    UNGROUPED_ID,
    UNGROUPED_KEY,
    UNGROUPED_TITLE,
    WORKSTREAM_SCHEMA,
)


def ungrouped_project() -> Descriptor:
    """The descriptor of the reserved project. Renderers localise its title, the value never changes."""
    return {
        "schema": PROJECT_SCHEMA,
        "project_id": UNGROUPED_ID,
        "project_key": UNGROUPED_KEY,
        "title": UNGROUPED_TITLE,
        "description": None,
        "default_locale": DEFAULT_LOCALE,
        "timezone": None,
        "catalog_state": "included",
        "version": 0,
    }


def ungrouped_workstream(scope_id: str) -> Descriptor:
    """The descriptor of a scope that nobody registered: its title is its own id."""
    return {
        "schema": WORKSTREAM_SCHEMA,
        "scope_id": scope_id,
        "project_id": UNGROUPED_ID,
        "key": None,
        "title": scope_id,
        "kind": "other",
        "catalog_state": "included",
        "external_refs": [],
        "labels": [],
        "version": 0,
    }
