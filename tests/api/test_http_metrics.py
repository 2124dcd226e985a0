"""What the server counts, who may see it, and that nothing private is in it."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from http_support import MARK, Site, check_problem
from prometheus_client.parser import text_string_to_metric_families

from passdown.kernel.errors import ERRORS


@pytest.fixture
def site(own_site: Callable[..., Site]) -> Site:
    return own_site(whole=True)


def page(site: Site, token: str) -> httpx.Response:
    return site.client.get(site.url + "/metrics", headers={"Authorization": f"Bearer {token}"})


def samples(site: Site) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample, as an independent parser reads it."""
    answer = page(site, site.reader)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_requests_are_counted_by_operation_and_outcome(site: Site) -> None:
    """Fault caught: a refused request that nobody counts, or one that counts twice."""
    for _ in range(3):
        site.post("/v1/notes/add", {"name": "a"})
    site.post("/v1/notes/add", {"name": MARK, "weight": -1})
    site.post(f"/{MARK}")
    site.client.get(site.url + "/healthz", headers={"Host": "zq7mark.example"})
    found = samples(site)

    def count(operation: str, outcome: str) -> float:
        return found["passdown_requests_total", (("operation", operation), ("outcome", outcome))]

    assert count("add_note", "ok") == 3
    assert count("add_note", "invalid_request") == 1
    assert count("none", "not_found") == 1
    assert count("none", "host_not_allowed") == 1
    assert found["passdown_request_seconds_count", (("operation", "add_note"),)] == 4


def test_reports_are_counted_by_projection(site: Site) -> None:
    """Fault caught: a locale that is taken from the request as it came, or left out where the project's is used."""
    created = site.post("/v1/handoff-reports/projects/create", {"key": "p", "title": MARK}).json()
    ask = {"project_id": created["project"]["project_id"]}
    site.post("/v1/handoff-reports/get", {**ask, "format": "json"})
    site.post("/v1/handoff-reports/get", {**ask, "format": "markdown", "locale": "en"})
    site.post("/v1/handoff-reports/get", {"project_id": MARK, "format": "markdown", "locale": "en"})
    site.post("/v1/handoff-reports/get", {**ask, "format": MARK, "locale": MARK})
    found = samples(site)
    reports = {
        dict(labels)["format"] + dict(labels)["locale"] + dict(labels)["outcome"]: value
        for (name, labels), value in found.items()
        if name == "passdown_reports_total"
    }
    assert reports == {"jsonprojectok": 1, "markdownenok": 1, "markdownenproject_not_found": 1}


def test_labels_are_words_of_closed_vocabularies(site: Site) -> None:
    """Fault caught: a name, an id or a path in a label, which is private and grows without end."""
    site.post("/v1/notes/add", {"name": MARK})
    site.post(f"/v1/{MARK}")
    site.client.request("ZQ7MARK", site.url + "/v1/notes/add")
    operations = {"none", "metrics"} | {route.name for route in site.app.routes}  # type: ignore[attr-defined]
    for (name, labels), _ in samples(site).items():
        assert MARK not in name
        for label, value in labels:
            allowed = {
                "operation": operations,
                "outcome": {"ok", "gone", *ERRORS},
                "format": {"markdown", "json"},
                "locale": {"en", "zh-CN", "project"},
            }.get(label)
            assert label == "le" or (allowed is not None and value in allowed)


def test_metrics_are_for_owners_and_readers_without_confinement(site: Site) -> None:
    """Fault caught: a page for everybody, or for a token that may see one project only."""
    assert page(site, site.owner).status_code == 200
    assert page(site, site.reader).status_code == 200
    check_problem(page(site, site.agent), "forbidden", rule="role")
    check_problem(site.client.get(site.url + "/metrics"), "unauthenticated", rule="missing")
    project = site.tokens.create("p", "ana", "reader", projects=["prj_1"])[0]
    check_problem(page(site, project), "forbidden", rule="project")
    other = site.tokens.create("o", "ana", "reader", operations=["get_handoff"])[0]
    check_problem(page(site, other), "forbidden", rule="operation")
    scraper = site.tokens.create("s", "ana", "reader", operations=["metrics"])[0]
    assert page(site, scraper).status_code == 200
