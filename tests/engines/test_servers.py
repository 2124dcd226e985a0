"""Server processes over one database: two that share it, and one whose database goes away and comes back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from engine_support import BY_NAME, SCOPE, child, hear, one_winner, prepared, tell

from support.places import Place, ServerPlace

UNAVAILABLE = {"store_not_readable", "store_not_writable", "store_busy", "store_outcome_unknown"}


@dataclass
class Running:
    """A server process and a client of it."""

    process: Any
    client: httpx.Client
    token_id: str

    def post(self, name: str, ask: dict[str, Any]) -> httpx.Response:
        return self.client.post(BY_NAME[name].path, json=ask)


@contextmanager
def served(place: Place) -> Iterator[Running]:
    with child("serve", place.url) as process:
        told = hear(process)
        headers = {"Authorization": f"Bearer {told['token']}"}
        with httpx.Client(base_url=told["url"], headers=headers, timeout=60, trust_env=False) as client:
            yield Running(process, client, told["token_id"])


def test_two_servers_over_one_database_are_one(place: Place) -> None:
    """Catches: state between requests in a server: heads, tokens or reports that the other one does not know."""
    with ExitStack() as stack:
        pair = [stack.enter_context(served(place)) for _ in range(2)]
        captured = pair[0].post("capture_source", {"scope_id": SCOPE, "source_type": "content", "content": "n"}).json()
        note = {"kind": "source", "source_ref": captured["source"]["source_ref"]}
        base = None
        with ThreadPoolExecutor(8) as pool:
            for number in range(4):
                barrier = threading.Barrier(8)

                def commit(writer: int, base: Any = base, number: int = number, barrier: Any = barrier) -> Any:
                    value = prepared(note, base, objective=f"Round {number} writer {writer}")
                    barrier.wait(60)
                    answer = pair[writer % 2].post("commit_handoff", value).json()
                    if "code" in answer:
                        return {"code": answer["code"], "current": answer.get("current")}
                    return answer

                base = one_winner(list(pool.map(commit, range(8))), number)
        asked = {"project_id": "prj_ungrouped", "format": "json"}
        reports = [each.post("get_handoff_report", asked) for each in pair]
        assert [report.status_code for report in reports] == [200, 200]
        selections = {report.json()["selection_digest"] for report in reports}
        assert len(selections) == 1
        pages = [each.post("list_handoff_revisions", {"scope_id": SCOPE}).json()["revisions"] for each in pair]
        assert pages[0] == pages[1]
        assert len(pages[0]) == 4
        tell(pair[0].process, pair[1].token_id)
        assert hear(pair[0].process) == "revoked"
        refused = pair[1].post("list_handoff_revisions", {"scope_id": SCOPE})
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


class Load:
    """Writers that capture one source after another until told to stop, and what each was answered."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._change = threading.Condition()
        self._stop = False
        self.acknowledged: list[str] = []
        self.refused: Counter[str] = Counter()
        self.wrong: list[Any] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(6)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join()

    def _run(self, writer: int) -> None:
        number = 0
        while not self._stop:
            number += 1
            name = f"{writer}-{number}"
            ask = {"scope_id": SCOPE, "source_type": "content", "source_id": name, "content": name}
            try:
                answer = self._server.post("capture_source", ask)
            except httpx.HTTPError as error:
                self.wrong.append(repr(error))
                continue
            with self._change:
                if answer.status_code == 200:
                    self.acknowledged.append(name)
                elif answer.status_code == 503 and answer.headers["content-type"] == "application/problem+json":
                    self.refused[answer.json()["code"]] += 1
                else:
                    self.wrong.append((answer.status_code, answer.text))
                self._change.notify_all()

    def wait_for(self, *, acknowledged: int = 0, refused: int = 0) -> None:
        """Until that many more were acknowledged and refused than by now."""
        with self._change:
            goal = len(self.acknowledged) + acknowledged, self.refused.total() + refused
            assert self._change.wait_for(
                lambda: len(self.acknowledged) >= goal[0] and self.refused.total() >= goal[1], 60
            ), (len(self.acknowledged), self.refused, self.wrong[:3])


@pytest.mark.engines("postgresql", "mysql", "oceanbase")
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_database_that_goes_away_under_load_is_told_as_503_and_nothing_is_lost(place: ServerPlace, end: str) -> None:
    """Catches: a 500, a hanging request, a server that has to be started again, a lost acknowledgement."""
    with served(place) as server:
        with Load(server) as load:
            load.wait_for(acknowledged=30)
            getattr(place.server, end)()
            try:
                load.wait_for(refused=20)
                ready = server.client.get("/readyz")
            finally:
                place.server.start()
            load.wait_for(acknowledged=30)
        assert load.wrong == []
        assert (ready.status_code, ready.json()["code"]) == (503, "store_not_readable")
        assert ready.json()["rule"] == "unreachable"
        assert server.client.get("/readyz").status_code == 200
        assert set(load.refused) <= UNAVAILABLE
        assert load.refused["store_not_readable"] + load.refused["store_not_writable"] >= 20
    rows = [bytes(row[0]).decode() for row in place.rows("SELECT source_id FROM pd_sources")]
    assert len(rows) == len(set(rows))
    assert set(load.acknowledged) <= set(rows)
    # Beyond those there is at most what was under way when the answer was lost.
    assert len(set(rows) - set(load.acknowledged)) <= load.refused["store_outcome_unknown"]
