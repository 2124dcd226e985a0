"""Finding projects and workstreams for a person; see :mod:`passdown.app.catalog`."""

from passdown.app.catalog import name_of, project, projects, workstream, workstream_of, workstreams

__all__ = ["name_of", "project", "projects", "workstream", "workstream_of", "workstreams"]
