"""Moments in which a plain note would lie and a handoff must not, each through the command line as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_support import World, serving
from git_support import Repo
from rendered_page import RenderedPage

INVENTED = "0123456789abcdef0123456789abcdef01234567"


# --- one command, in a strange repository -----------------------------------------------------------------------------


def test_after_init_one_command_gives_a_cited_handoff_in_under_a_minute(tmp_path: Path) -> None:
    world = World(tmp_path)
    repo = world.repo("strange", commits=12)
    repo.write("half-done.txt", "x\n")
    assert world.spawn(repo.path, "init").code == 0
    handed = world.spawn(repo.path, "handoff", "--json")  # ended after the promised minute
    assert handed.code == 0
    content = handed.json["prepared"]["content"]
    real = set(repo.text("log", "--format=%H").split())
    assert len(content["state"]) == 11
    for statement in content["state"]:
        assert statement["citations"]
        for citation in statement["citations"]:
            ref = citation["source_ref"]
            assert ref["source_type"] == "worktree" or ref["source_id"].partition("@")[0] in real
    assert world.ok(repo.path, "continue", "--json").json["next_action_reasons"] == ["no_next_action"]


# --- a file that is gone ----------------------------------------------------------------------------------------------


def test_a_deleted_uncommitted_file_is_named_before_anything_else_is_done(world: World) -> None:
    repo = world.bound()
    repo.write("only copy.txt", "the whole idea\n")
    repo.write("kept.txt", "this one stays\n")
    world.ok(repo.path, "handoff", "--next", "Build on the whole idea")
    (repo.path / "only copy.txt").unlink()
    answer = world.ok(repo.path, "continue")
    lines = answer.out.splitlines()
    assert "! Uncommitted then, GONE now: only copy.txt" in lines
    warned = lines.index("! Uncommitted then, GONE now: only copy.txt")
    assert warned < lines.index("State") < lines.index("Next action")
    assert "→ Build" not in answer.out
    assert "uncommitted files that it rests on are gone" in answer.out
    found = world.ok(repo.path, "continue", "--json").json
    assert found["workspace"]["uncommitted"] == {
        "changed": [], "elsewhere": False, "gone": ["only copy.txt"], "not_recorded": 0, "present": 1, "remarks": [],
    }  # fmt: skip
    assert (found["next_action_usable"], found["next_action_reasons"]) == (False, ["uncommitted_files_gone"])
    world.refused("workspace_diverged", 3, repo.path, "continue", "--require-usable")


def test_a_file_that_came_back_with_other_content_is_called_changed(world: World) -> None:
    repo = world.bound()
    repo.write("idea.txt", "the whole idea\n")
    world.ok(repo.path, "handoff", "--next", "Build on it")
    repo.write("idea.txt", "another idea..\n")
    assert "~ Uncommitted then, changed since: idea.txt" in world.ok(repo.path, "continue").out


# --- a commit that was invented ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [INVENTED, INVENTED[:10], "main~99", "v9.9", "HEAD^{tree}"])
def test_an_invented_commit_is_refused_at_handoff_and_nothing_is_kept(world: World, name: str) -> None:
    repo = world.bound()
    before = world.everything()
    answer = world.refused("git_object_not_found", 4, repo.path, "handoff", "--complete", "--cite", name)
    assert name not in answer.err
    assert world.everything() == before


@pytest.fixture(scope="module")
def claimed(new_world: Any) -> dict[str, Any]:
    """A `complete` that rests on an invented commit, sent over HTTP by a caller without a repository."""
    world = new_world()
    repo = world.bound()
    scope_id = world.ok(repo.path, "switch", "--json").json["current_scope_id"]
    project_id = world.ok(repo.path, "report", "projects", "--json").json[0]["project_id"]
    token = world.ok(repo.path, "token", "create", "t", "--principal", "far-agent", "--json").json["token"]
    headers = {"Authorization": f"Bearer {token}"}
    cited = [{"kind": "inline", "label": "commit"}]
    with serving(world, repo.path) as (url, _):
        answer = httpx.post(
            f"{url}/v1/handoff/hand-off-now",
            json={
                "scope_id": scope_id,
                "objective": "Charge once",
                "state": [{"text": f"All done in {INVENTED}", "citations": cited}],
                "disposition": "complete",
                "evidence": [{"label": "commit", "source_type": "git_commit", "descriptor": {"oid": INVENTED}}],
                "commit": True,
            },
            headers=headers,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        asked = {"scope_id": scope_id, "target": {"kind": "latest"}, "confirm_scope": scope_id}
        continued = httpx.post(f"{url}/v1/handoff/continue", json=asked, headers=headers, trust_env=False).json()
        reports = {
            (form, locale): httpx.post(
                f"{url}/v1/handoff-reports/get",
                json={"project_id": project_id, "format": form, "locale": locale},
                headers=headers,
                trust_env=False,
            ).content
            for form, locale in (("json", "en"), ("markdown", "en"), ("markdown", "zh-CN"))
        }
    return {"world": world, "repo": repo, "answer": answer.json(), "continued": continued, "reports": reports}


def test_an_invented_commit_over_http_is_said_and_not_read(claimed: dict[str, Any]) -> None:
    assert claimed["answer"]["unproved"] is True
    (evidence,) = claimed["continued"]["evidence"]
    assert (evidence["assurance"], evidence["read_by"], evidence["remote_refs"]) == ("caller_supplied", None, None)
    assert claimed["continued"]["unproved"] is True


def test_an_invented_commit_never_takes_the_identity_of_a_reading(claimed: dict[str, Any]) -> None:
    ref = claimed["continued"]["evidence"][0]["citation"]["source_ref"]
    assert ref["source_id"].endswith("-said")


def test_continue_shows_a_complete_on_an_invented_commit_as_unproved(claimed: dict[str, Any]) -> None:
    world, repo = claimed["world"], claimed["repo"]
    out = world.ok(repo.path, "continue").out
    assert "Status     ✓ complete  unproved: rests on words alone" in out.splitlines()
    assert "said, not read" in out
    assert "read by" not in out
    assert "✓ complete, unproved" in world.ok(repo.path).out


def test_the_json_report_marks_it_unproved(claimed: dict[str, Any]) -> None:
    (workstream,) = json.loads(claimed["reports"]["json", "en"])["workstreams"]
    assert workstream["unproved"] is True
    assert workstream["content"]["disposition"] == "complete"


@pytest.mark.parametrize(
    ("locale", "said", "unproved"), [("en", "said, not read", "unproved"), ("zh-CN", "", "未经证实")]
)
def test_both_pages_mark_it_unproved(claimed: dict[str, Any], locale: str, said: str, unproved: str) -> None:
    page = RenderedPage(claimed["reports"]["markdown", locale])
    status = {"en": "complete, unproved", "zh-CN": "（未经证实）"}[locale]
    assert status in page.text
    assert page.text.count(unproved) >= 2
    assert said in page.text


# --- committed and pushed ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pushed(new_world: Any) -> tuple[World, Repo, str, str]:
    """A repository with a real bare remote: the first commit is pushed, the second is not."""
    world: World = new_world()
    repo = world.repo()
    repo.git("init", "-q", "--bare", "../remote.git")
    repo.git("remote", "add", "backup", "../remote.git")
    first = repo.text("rev-parse", "HEAD")
    repo.git("push", "-q", "backup", "main")
    second = repo.commit("Not pushed yet", {"b": "b"})
    world.ok(repo.path, "init")
    world.ok(repo.path, "handoff", "--next", "Push it")
    return world, repo, first, second


def expected_refs(repo: Repo, oid: str) -> list[str]:
    """What git itself says."""
    return repo.text("for-each-ref", "--format=%(refname)", "--contains", oid, "refs/remotes/").split()


def test_every_cited_commit_says_which_remote_tracking_refs_held_it(pushed: tuple[World, Repo, str, str]) -> None:
    world, repo, first, second = pushed
    found = world.ok(repo.path, "continue", "--json").json
    held = {
        item["citation"]["source_ref"]["source_id"].partition("@")[0]: item["remote_refs"]
        for item in found["evidence"]
        if item["citation"]["source_ref"]["source_type"] == "git_commit"
    }
    assert expected_refs(repo, first) == ["refs/remotes/backup/main"]
    assert [name.removeprefix("refs/remotes/") for name in held[first]] == ["backup/main"]
    assert held[second] == expected_refs(repo, second) == []


def test_the_screens_and_both_pages_tell_pushed_from_committed(pushed: tuple[World, Repo, str, str]) -> None:
    world, repo, first, second = pushed
    lines = world.ok(repo.path, "continue").out.splitlines()
    for oid, words in ((first, "backup/main"), (second, "on no remote-tracking ref when read")):
        place = next(number for number, line in enumerate(lines) if f"commit {oid[:12]}" in line)
        assert words in lines[place + 1]
    for locale, none in (("en", "on no remote-tracking ref when read"), ("zh-CN", "读取时不在任何远程跟踪引用上")):
        text = RenderedPage(world.ok(repo.path, "report", "--locale", locale).out.encode()).text
        assert none in text
        assert "backup/main" in text


def test_a_later_push_is_another_reading_and_the_old_one_stays(pushed: tuple[World, Repo, str, str]) -> None:
    world, repo, _, second = pushed
    before = world.ok(repo.path, "continue", "--json").json
    repo.git("push", "-q", "backup", "main")
    assert world.ok(repo.path, "continue", "--json").json["evidence"] == before["evidence"]
    world.ok(repo.path, "handoff", "--state", "It is pushed")
    after = world.ok(repo.path, "continue", "--json").json
    (held,) = (
        item["remote_refs"]
        for item in after["evidence"]
        if item["citation"]["kind"] == "source"
        and item["citation"]["source_ref"]["source_type"] == "git_commit"
        and item["citation"]["source_ref"]["source_id"].startswith(second)
    )
    assert [name.removeprefix("refs/remotes/") for name in held] == ["backup/main"]


# --- a file that was sent ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sent(new_world: Any) -> tuple[World, bytes]:
    world: World = new_world()
    repo = world.bound()
    world.ok(repo.path, "handoff", "--next", "Go on", "--state", "The table exists")
    path = world.root / "week.json"
    world.ok(repo.path, "report", "--format", "json", "--output", str(path))
    return world, path.read_bytes()


def verified(world: World, data: bytes) -> tuple[int, Any]:
    answer = world.run(world.root, "report", "verify", "-", "--json", stdin=data, PASSDOWN_DATA=None, HOME=None)
    return answer.code, answer.json[0]


def test_a_sent_report_verifies_without_a_store(sent: tuple[World, bytes]) -> None:
    code, verdict = verified(World(sent[0].home), sent[1])
    assert (code, verdict["ok"], verdict["verified"]) == (0, True, ["selection_digest", "report_digest"])


@pytest.mark.parametrize(
    ("old", "new", "digest"),
    [
        (b"The table exists", b"The table exits!", "report_digest"),
        (b'"disposition":"continuable"', b'"disposition":"complete"', "report_digest"),
        (b'"title":"shop"', b'"title":"shap"', "report_digest"),
        (b'"revision":1', b'"revision":2', "selection_digest"),
        (b'"scope_id":"scp_', b'"scope_id":"scq_', "selection_digest"),
    ],
)
def test_one_changed_character_names_the_digest_that_broke(
    sent: tuple[World, bytes], old: bytes, new: bytes, digest: str
) -> None:
    changed = sent[1].replace(old, new, 1) if digest == "report_digest" else sent[1].replace(old, new)
    assert changed != sent[1]
    code, verdict = verified(sent[0], changed)
    assert (code, verdict["ok"], verdict["code"]) == (4, False, "digest_mismatch")
    assert verdict["digest"] == digest


def test_no_single_changed_byte_goes_unnoticed(sent: tuple[World, bytes]) -> None:
    """Bytes spread over the whole file, each replaced alone; the checker itself runs here, the file is the same."""
    from passdown.kernel.errors import PassdownError
    from passdown.report.verify import verify

    data = sent[1]
    verify(data)
    for place in range(0, len(data), 7):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(PassdownError) as refused:
            verify(changed)
        assert refused.value.spec.exit_code in (2, 4)
