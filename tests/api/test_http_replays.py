"""``Idempotency-Key``: what a repeated request is answered, and that its effect is made once, whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from http_support import NOW_US, Site, check_problem

from passdown.app import replay_store
from passdown.app.application import Application
from passdown.app.operations import OPERATIONS
from passdown.app.repeating import KEYED, NATURAL
from passdown.app.replays import LIFETIME_US, Replays
from passdown.app.spanning import SpanningStore
from passdown.kernel.clock import FixedClock
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Principal
from passdown.report.operations import REGISTER_WORKSTREAM, RegisterWorkstreamAsk
from passdown.storage import open_store

REGISTER = "/v1/handoff-reports/workstreams/register"
LIST = "/v1/handoff-reports/workstreams/list"


@pytest.fixture
def site(own_site: Callable[..., Site]) -> Site:
    return own_site(whole=True)


def project(site: Site, key: str = "p1", **headers: str) -> str:
    answer = site.post("/v1/handoff-reports/projects/create", {"key": key, "title": "P"}, **headers)
    assert answer.status_code == 200
    found: str = answer.json()["project"]["project_id"]
    return found


def titles(site: Site, project_id: str) -> list[str]:
    found = site.post(LIST, {"project_id": project_id, "limit": 100}).json()["workstreams"]
    return [item["title"] for item in found]


def kept(site: Site) -> int:
    rows = site.store.read(lambda session: session.all("SELECT COUNT(*) FROM pd_replays"))
    return int(rows[0][0])


def register(site: Site, project_id: str, title: str, key: str, token: str | None = None) -> httpx.Response:
    return site.post(REGISTER, {"project_id": project_id, "title": title}, token, Idempotency_Key=key)


def test_a_repeated_request_is_answered_with_the_first_bytes_and_changes_nothing(site: Site) -> None:
    """Fault caught: a second workstream, an answer that is made anew, or a replay that is not told."""
    project_id = project(site)
    first = register(site, project_id, "Queue", "k1")
    assert (first.status_code, "idempotency-replayed" in first.headers) == (200, False)
    before = site.store.writes()
    again = register(site, project_id, "Queue", "k1")
    assert (again.status_code, again.content, again.headers["idempotency-replayed"]) == (200, first.content, "true")
    assert site.store.writes() == before
    assert titles(site, project_id) == ["Queue"]


def test_without_a_key_or_with_another_one_the_effect_is_made_again(site: Site) -> None:
    """Fault caught: a key that is ignored in the look-up, so that everything is a repetition."""
    project_id = project(site)
    body = {"project_id": project_id, "title": "Queue"}
    scopes = [site.post(REGISTER, body).json()["workstream"]["scope_id"] for _ in range(2)]
    scopes += [register(site, project_id, "Queue", key).json()["workstream"]["scope_id"] for key in ("k", "K", "k ok")]
    assert len(set(scopes)) == 5


def test_the_same_key_for_another_request_is_a_conflict_that_changes_nothing(site: Site) -> None:
    """Fault caught: the answer to another question, or an effect beside the refusal."""
    project_id = project(site)
    register(site, project_id, "Queue", "k1")
    before = site.store.writes()
    check_problem(register(site, project_id, "Queu\u00e9", "k1"), "idempotency_conflict", rule="other_request")
    # The bytes decide: the same value in another spelling is another request.
    spaced = orjson.dumps({"project_id": project_id, "title": "Queue"}, option=orjson.OPT_INDENT_2)
    check_problem(site.post(REGISTER, spaced, Idempotency_Key="k1"), "idempotency_conflict")
    assert site.store.writes() == before


def test_a_key_belongs_to_its_principal_and_its_operation(site: Site) -> None:
    """Fault caught: one caller who is shown what another one was answered."""
    project_id = project(site, Idempotency_Key="k1")
    first = register(site, project_id, "Queue", "k1")
    other = register(site, project_id, "Queue", "k1", token=site.owner)
    assert other.status_code == 200
    assert other.content != first.content
    same_principal = site.tokens.create("second", "codex-2", "agent")[0]
    assert register(site, project_id, "Queue", "k1", token=same_principal).content == first.content


def test_a_kept_answer_is_not_shown_to_a_token_that_may_not_ask(site: Site) -> None:
    """Fault caught: a replay that passes by the doors."""
    project_id = project(site)
    register(site, project_id, "Queue", "k1")
    reader = site.tokens.create("r", "codex-2", "reader")[0]
    check_problem(register(site, project_id, "Queue", "k1", token=reader), "forbidden", rule="role")
    confined = site.tokens.create("c", "codex-2", "agent", projects=["prj_other"])[0]
    check_problem(register(site, project_id, "Queue", "k1", token=confined), "forbidden", rule="project")


def test_a_key_is_free_again_after_24_hours_and_swept(site: Site) -> None:
    """Fault caught: an expiry that is off by one, or a table that only grows."""
    project_id = project(site)
    first = register(site, project_id, "Queue", "k1")
    register(site, project_id, "Other", "k2")
    site.clock.move(LIFETIME_US - 1)
    assert register(site, project_id, "Queue", "k1").content == first.content
    assert kept(site) == 2
    site.clock.move(1)
    anew = register(site, project_id, "Queue", "k1")
    assert "idempotency-replayed" not in anew.headers
    assert anew.content != first.content
    assert kept(site) == 1


def test_a_refused_request_keeps_nothing_and_may_succeed_later(site: Site) -> None:
    """Fault caught: a refusal that is repeated for a day although its reason is gone."""
    body = {"project_id": "prj_missing", "title": "Queue"}
    check_problem(site.post(REGISTER, body, Idempotency_Key="k1"), "project_not_found")
    assert kept(site) == 0
    project_id = project(site)
    taken = {"key": "p2", "title": "P"}
    site.post("/v1/handoff-reports/projects/create", {"key": "p2", "title": "first"})
    check_problem(site.post("/v1/handoff-reports/projects/create", taken, Idempotency_Key="k2"), "project_conflict")
    other = {"key": "p3", "title": "P"}
    assert site.post("/v1/handoff-reports/projects/create", other, Idempotency_Key="k2").status_code == 200
    assert register(site, project_id, "Queue", "k1").status_code == 200


def test_a_handoff_is_not_put_on_top_of_a_newer_one_by_a_repetition(site: Site) -> None:
    """Fault caught: a lost answer, somebody else's commit, and the old content as the newest revision."""
    note = {"label": "n", "source_type": "content", "content": "seen"}
    cited = [{"kind": "inline", "label": "n"}]

    def ask(text: str) -> dict[str, Any]:
        return {
            "scope_id": "s",
            "objective": "o",
            "evidence": [note],
            "state": [{"text": text, "citations": cited}],
            "disposition": "continuable",
            "commit": True,
        }

    first = site.post("/v1/handoff/hand-off-now", ask("mine"), Idempotency_Key="k1")
    assert site.post("/v1/handoff/hand-off-now", ask("theirs")).status_code == 200
    again = site.post("/v1/handoff/hand-off-now", ask("mine"), Idempotency_Key="k1")
    assert again.content == first.content
    current = site.post("/v1/handoff/get", {"scope_id": "s"}).json()["handoff"]
    assert current["content"]["state"][0]["text"] == "theirs"
    assert current["handoff_ref"]["revision"] == 2


def test_of_many_at_once_one_makes_the_effect_and_all_get_its_answer(site: Site) -> None:
    """Fault caught: a look-up and an insertion with a gap between them."""
    project_id = project(site)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: register(site, project_id, "Queue", "k1"), range(16)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert titles(site, project_id) == ["Queue"]


@pytest.mark.parametrize("key", ["x", "x" * 256, "\u9879" * 256, "a b", "\U0001f511"])
def test_a_key_of_1_to_256_characters_is_taken(site: Site, key: str) -> None:
    """Fault caught: a limit that counts bytes, or one that is off by one."""
    project_id = project(site)
    headers = {"Authorization": f"Bearer {site.agent}", "Content-Type": "application/json"}
    sent = [*((k.encode(), v.encode()) for k, v in headers.items()), (b"Idempotency-Key", key.encode())]
    body = orjson.dumps({"project_id": project_id, "title": "Queue"})
    answers = [site.client.post(site.url + REGISTER, content=body, headers=sent) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ([b""], "empty"),
        ([b"x" * 257], "too_long"),
        (["\u9879".encode() * 257], "too_long"),
        ([b"a\xff"], "utf_8"),
        (["a\u2028b".encode()], "control_character"),
        ([b"a", b"a"], "repeated"),
    ],
)
def test_another_key_is_refused_before_anything_happens(site: Site, keys: list[bytes], rule: str) -> None:
    """Fault caught: a key that is cut, guessed, or dropped, so that the caller believes in it."""
    project_id = project(site)
    before = site.store.writes()
    sent = [(b"Authorization", f"Bearer {site.agent}".encode()), (b"Content-Type", b"application/json")]
    sent += [(b"Idempotency-Key", key) for key in keys]
    body = orjson.dumps({"project_id": project_id, "title": "Queue"})
    answer = site.client.post(site.url + REGISTER, content=body, headers=sent)
    check_problem(answer, "invalid_request", field="Idempotency-Key", rule=rule)
    assert site.store.writes() == before


def test_every_operation_that_writes_says_how_it_is_repeated() -> None:
    """Fault caught: a new operation whose repetition nobody thought about."""
    writing = {op.name for op in OPERATIONS if op.effect != "read"}
    assert set(KEYED) | set(NATURAL) == writing
    assert not set(KEYED) & set(NATURAL)


# --- crashes ----------------------------------------------------------------------------------------------------------

WHO = Principal("ana", "asserted", "owner")


class Bench:
    """The pieces below HTTP, with a project to register workstreams in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.application = Application(open_store(path, create=True), FixedClock(NOW_US))
        self.replays = self.application.replays()

    def register(self, project_id: str) -> bytes:
        ask = RegisterWorkstreamAsk(project_id=project_id, title="Queue")
        answer = self.application.handler(REGISTER_WORKSTREAM.name)(WHO, ask)
        return bytes(answer.model_dump_json().encode())

    def once(self, project_id: str) -> tuple[bytes, bool]:
        return self.replays.once(WHO, REGISTER_WORKSTREAM.name, "k", b"body", lambda: self.register(project_id))

    def counts(self) -> tuple[int, int]:
        """Workstreams, kept answers."""
        one = "SELECT (SELECT COUNT(*) FROM pc_handoff_report_workstreams), (SELECT COUNT(*) FROM pd_replays)"
        row = self.application.store.read(lambda session: session.one(one))
        assert row is not None
        return (row[0], row[1])


@pytest.fixture
def below(tmp_path: Path) -> Iterator[tuple[Bench, str]]:
    bench = Bench(tmp_path / "passdown.db")
    with bench.application as application:
        from passdown.report.operations import CREATE_PROJECT, CreateProjectAsk

        made = application.caller(WHO)(CREATE_PROJECT, CreateProjectAsk(key="p", title="P"))
        yield bench, made.project.project_id


@pytest.mark.parametrize("window", ["before the effect", "after the effect", "after the answer was kept"])
def test_a_crash_leaves_the_effect_with_its_answer_or_neither(below: tuple[Bench, str], window: str) -> None:
    """Fault caught: kill -9 between the effect and its answer, after which a repetition makes a second effect."""
    bench, project_id = below

    def die(*_given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    process = os.fork()
    if process == 0:
        work = bench.register

        def dying(project_id: str) -> bytes:
            if window == "before the effect":
                die()
            answer = work(project_id)
            if window == "after the effect":
                die()
            return answer

        bench.register = dying  # type: ignore[method-assign]
        if window == "after the answer was kept":
            complete = replay_store.complete
            replay_store.complete = lambda *given: (complete(*given), die())[0]  # type: ignore[func-returns-value]
        bench.once(project_id)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert bench.counts() == (0, 0)
    first, replayed = bench.once(project_id)
    assert (replayed, bench.counts()) == (False, (1, 1))
    assert bench.once(project_id) == (first, True)
    assert bench.counts() == (1, 1)


def test_a_fault_while_the_answer_is_kept_takes_the_effect_back(
    below: tuple[Bench, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault caught: two transactions where one is promised."""
    bench, project_id = below

    def fail(*_given: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(replay_store, "complete", fail)
    with pytest.raises(RuntimeError):
        bench.once(project_id)
    assert bench.counts() == (0, 0)


def test_a_span_does_not_open_inside_another_and_other_threads_stay_outside(tmp_path: Path) -> None:
    """Fault caught: a reader of another request that sees what is not committed, or a span that commits half."""
    with (
        closing(SpanningStore(open_store(tmp_path / "passdown.db", create=True))) as store,
        ThreadPoolExecutor(1) as pool,
    ):
        put = "INSERT INTO pd_counters (name, value) VALUES (:name, 1)"
        count = "SELECT COUNT(*) FROM pd_counters WHERE name = :name"

        def look() -> int:
            return int(store.read(lambda session: session.all(count, name=b"a"))[0][0])

        def work(_session: Any) -> tuple[int, int]:
            store.write(lambda session: session.run(put, name=b"a"))
            with pytest.raises(PassdownError) as refused:
                store.span(lambda _: None)
            assert (refused.value.code, refused.value.members["rule"]) == ("internal_error", "nested_write")
            return look(), pool.submit(look).result()

        assert store.span(work) == (1, 0)
        assert look() == 1
        assert store.writes() == 1


def test_two_triples_that_join_to_one_text_have_keys_of_their_own(below: tuple[Bench, str]) -> None:
    """Fault caught: parts that are glued without their lengths, so that one principal can take another's key."""
    bench, _ = below
    replays: Replays = bench.replays
    first = replays.once(Principal("ab", "asserted", "owner"), "c", "k", b"", lambda: b"1")
    other = replays.once(Principal("a", "asserted", "owner"), "bc", "k", b"", lambda: b"2")
    assert (first, other) == ((b"1", False), (b"2", False))
