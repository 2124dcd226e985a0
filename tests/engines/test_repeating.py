"""One ``Idempotency-Key``, many requests, two servers over one database: one effect, and everybody gets its answer."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
from engine_support import BY_NAME, SCOPE
from test_servers import Running, served

from support.places import Place

SENDERS = 8
NOTE = {"label": "note", "source_type": "content", "content": "Seen by eye."}


def handing_off(objective: str) -> dict[str, Any]:
    """A request that has no identity of its own: sent twice without a key, it would be tried twice."""
    state = [{"text": "It stands.", "citations": [{"kind": "inline", "label": "note"}]}]
    members = {"objective": objective, "evidence": [NOTE], "state": state}
    return {"scope_id": SCOPE, **members, "disposition": "continuable", "commit": True}


def send(server: Running, key: str, ask: dict[str, Any]) -> httpx.Response:
    return server.client.post(BY_NAME["hand_off_now"].path, json=ask, headers={"Idempotency-Key": key})


def revisions(place: Place) -> int:
    scope = place.literal(SCOPE.encode())
    return int(place.rows(f"SELECT COUNT(*) FROM pd_handoff_revisions WHERE scope_id = {scope}")[0][0])


def test_one_key_at_once_through_two_servers_makes_one_effect_and_equal_answers(place: Place) -> None:
    """Catches: two requests that both find no kept answer, on any engine and between processes."""
    with ExitStack() as stack:
        pair = [stack.enter_context(served(place)) for _ in range(2)]
        pair[1].client.headers["Authorization"] = pair[0].client.headers["Authorization"]
        for number in range(3):
            barrier = threading.Barrier(SENDERS)

            def post(sender: int, number: int = number, barrier: threading.Barrier = barrier) -> httpx.Response:
                barrier.wait(60)
                return send(pair[sender % 2], f"key-{number}", handing_off(f"Round {number}"))

            with ThreadPoolExecutor(SENDERS) as pool:
                answers = list(pool.map(post, range(SENDERS)))
            assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
            assert len({answer.content for answer in answers}) == 1
            assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
            assert revisions(place) == number + 1
        other = send(pair[1], "key-0", handing_off("Another request"))
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
        assert revisions(place) == 3


def test_a_request_whose_server_was_killed_is_sent_to_another_and_happens_once(place: Place) -> None:
    """Catches: an effect without its answer, after which a repetition makes a second one."""
    with served(place) as survivor:
        for number in range(4):
            key, ask = f"lost-{number}", handing_off(f"Round {number}")
            with served(place) as doomed:
                doomed.client.headers["Authorization"] = survivor.client.headers["Authorization"]
                with ThreadPoolExecutor(4) as pool:
                    sent = [pool.submit(send, doomed, key, ask) for _ in range(4)]
                    # From before the first byte to behind the first answer, wherever this machine is by then.
                    time.sleep(number * 0.02)
                    doomed.process.kill()
                    for each in sent:
                        each.exception(60)
            answer = send(survivor, key, ask)
            assert answer.status_code == 200, answer.text
            assert answer.json()["committed"]["handoff_ref"]["revision"] == number + 1
            assert send(survivor, key, ask).content == answer.content
            assert revisions(place) == number + 1
