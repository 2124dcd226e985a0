"""A handoff from a checkout: it says what git shows and what a person adds, and cites all of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from git_support import Repo
from handoff_support import HOST, SCOPE, Desk, cite_revision, digest_of, draft, inline, say

from passdown.app.citing import Words
from passdown.app.handing import ask_from_checkout
from passdown.app.resuming import continue_here, recorded_worktree
from passdown.handoff.gitdraft import GitFacts
from passdown.handoff.gitdraft import draft as git_draft
from passdown.handoff.host import Checkout
from passdown.handoff.models import HandoffContent
from passdown.handoff.operations import CONTINUE_HANDOFF, HAND_OFF_NOW
from passdown.kernel.errors import PassdownError
from passdown.kernel.wire import dump, validate

MakeRepo = Callable[..., Repo]


def asked(desk: Desk, repo: Repo, locale: Any = "en", **words: Any) -> dict[str, Any]:
    with repo.reader() as git:
        call = desk.application.caller(HOST)
        ask = ask_from_checkout(call, Checkout(git), SCOPE, Words(**words), title="The queue", locale=locale)
    return dump(ask)


def hand_off(desk: Desk, repo: Repo, **words: Any) -> Any:
    return desk.ask("hand_off_now", asked(desk, repo, **words))


def continued(desk: Desk, repo: Repo, **options: Any) -> Any:
    with repo.reader() as git:
        return dump(continue_here(desk.application.caller(HOST), Checkout(git), SCOPE, **options))


def texts(value: dict[str, Any]) -> list[str]:
    return [statement["text"] for statement in value["state"]]


def test_one_command_in_a_strange_repository_gives_a_cited_handoff(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    oids = [repo.commit(f"Subject {number}", {"a.txt": str(number)}) for number in range(3)]
    repo.git("tag", "v1", oids[1])
    repo.write("left.txt", "x")
    answer = hand_off(desk, repo)
    value = answer["prepared"]["content"]
    assert value["objective"] == "The queue"
    assert (value["disposition"], value["next_action"]) == ("continuable", None)
    commits = value["state"][:3]
    for statement, oid, subject in zip(commits, oids[::-1], ("Subject 2", "Subject 1", "Subject 0"), strict=True):
        assert subject in statement["text"]
        assert [item["source_ref"]["source_id"][:40] for item in statement["citations"]] == [oid]
    assert "v1" in commits[1]["text"]
    assert "left.txt" in value["state"][3]["text"]
    assert value["state"][3]["citations"][0]["source_ref"]["source_type"] == "worktree"
    assert value["omissions"] == []
    found = continued(desk, repo)
    assert (found["workspace"]["relation"], found["workspace"]["uncommitted"]["present"]) == ("aligned", 1)
    assert {item["assurance"] for item in found["evidence"]} == {"host_read"}
    assert found["content_digest"] == digest_of(value)


def test_older_commits_than_ten_are_an_omission_that_says_so(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    for number in range(11):
        repo.commit(f"Subject {number}")
    ask = asked(desk, repo)
    assert len(ask["state"]) == 11
    assert "Subject 0" not in str(texts(ask))
    assert len(ask["omissions"]) == 1
    assert len(ask["evidence"]) == 11


def test_only_commits_since_the_last_handoff_are_restated_and_that_one_is_cited(
    desk: Desk, make_repo: MakeRepo
) -> None:
    repo = make_repo()
    for number in range(4):
        repo.commit(f"Subject {number}")
    first = hand_off(desk, repo)["committed"]["handoff_ref"]
    repo.commit("Subject new")
    ask = asked(desk, repo)
    assert [text for text in texts(ask) if "Subject" in text] == ["Committed: Subject new"]
    assert ask["omissions"][-1]["citation"] == cite_revision(first)
    assert ask["expected_base"] == first
    assert ask["objective"] == "The queue"
    assert desk.ask("hand_off_now", ask)["committed"]["handoff_ref"]["revision"] == 2
    ask = asked(desk, repo)
    assert [text for text in texts(ask) if "Subject" in text] == ["Committed: Subject new"]


def test_whoever_was_overtaken_gets_a_conflict_and_stores_nothing(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One")
    hand_off(desk, repo)
    late = asked(desk, repo, state=["Mine."])
    current = hand_off(desk, repo, state=["Theirs."])["committed"]["handoff_ref"]
    assert desk.refused("handoff_conflict", "hand_off_now", **late).members["current"] == current


def test_what_a_person_says_cites_head_and_the_worktree_when_it_is_dirty(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    oid = repo.commit("One", {"a.txt": "1"})
    clean = asked(desk, repo, state=["It works."], next_action="Ship it.", only_words=True)
    assert texts(clean) == ["It works."]
    assert clean["next_action"]["citations"] == clean["state"][0]["citations"] == [inline(f"commit {oid}")]
    assert [item["source_type"] for item in clean["evidence"]] == ["git_commit"]
    repo.write("a.txt", "2")
    dirty = asked(desk, repo, blocked=["No key."], state=["It works."])
    assert dirty["disposition"] == "blocked"
    assert texts(dirty)[:2] == ["No key.", "It works."]
    assert dirty["state"][0]["citations"] == [inline(f"commit {oid}"), inline("worktree")]
    assert asked(desk, repo, complete=True)["disposition"] == "complete"
    assert hand_off(desk, repo, objective="Another", complete=True)["unproved"] is False


def test_named_commits_and_files_are_cited_each_once(desk: Desk, make_repo: MakeRepo) -> None:
    """Catches two files with the same bytes that become one, so that a statement cites the wrong path."""
    repo = make_repo()
    first = repo.commit("One", {"a.txt": "same", "b.txt": "same", "deep/a.txt": "other"})
    repo.commit("Two")
    cited = ["a.txt", "b.txt", "a.txt", "HEAD", "HEAD~1", first, "deep/a.txt"]
    ask = asked(desk, repo, state=["It works."], cite=cited, only_words=True)
    labels = [item["label"] for item in ask["state"][0]["citations"]]
    assert len(labels) == len(set(labels)) == 5
    by_label = {item["label"]: item["descriptor"] for item in ask["evidence"]}
    shown = [by_label[label].get("path") or by_label[label]["subject"] for label in labels]
    assert shown == ["Two", "a.txt", "b.txt", "One", "deep/a.txt"]
    desk.ask("hand_off_now", ask)
    assert len(desk.latest()["evidence"]) == 5


@pytest.mark.parametrize("name", ["1f" * 20, "no-such-thing", "HEAD~7", "../outside", ".git/config", "-x"])
def test_an_invented_name_is_refused_before_anything_is_stored(desk: Desk, make_repo: MakeRepo, name: str) -> None:
    repo = make_repo()
    repo.commit("One")
    before = desk.everything()
    with pytest.raises(PassdownError) as caught:
        asked(desk, repo, state=["Done."], cite=[name])
    assert caught.value.code == "git_object_not_found"
    assert desk.everything() == before


def test_long_subjects_never_make_a_handoff_too_large(desk: Desk, make_repo: MakeRepo) -> None:
    """Catches a repository in which the one command cannot work; what was cut is visible, its source has it."""
    repo = make_repo()
    for number in range(12):
        repo.commit(f"{number} " + "\x01日" * 2_000, {"y" * 100 + f"/{number}/" + "\x02" * 90: "x"})
    repo.git("reset", "-q", "--soft", "HEAD~1")
    answer = hand_off(desk, repo)
    for statement in answer["prepared"]["content"]["state"][:10]:
        assert statement["text"].endswith("…")
        source = desk.call("get_source", scope_id=SCOPE, source_ref=statement["citations"][0]["source_ref"])
        assert len(source["source"]["descriptor"]["subject"]) == 1_000
        assert source["source"]["descriptor"]["subject_chars"] > 4_000


def test_a_repository_without_a_commit_is_handed_off_by_its_worktree(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.write("plan.txt", "x")
    answer = hand_off(desk, repo, state=["Planned."])
    value = answer["prepared"]["content"]
    assert [item["source_ref"]["source_type"] for item in value["state"][0]["citations"]] == ["worktree"]
    assert any("no commit" in item["text"] for item in value["omissions"])
    found = continued(desk, repo)
    assert (found["workspace"]["head"], found["workspace"]["relation"]) == (None, "unknown")
    assert found["workspace"]["uncommitted"]["present"] == 1


def test_a_shallow_clone_says_that_history_was_not_available(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    repo.commit("Two", {"a.txt": "2"})
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(repo.path.parent / "shallow"))
    ask = asked(desk, make_repo("shallow", create=False))
    assert any("shallow" in item["text"] for item in ask["omissions"])


def test_both_languages_say_the_same_with_the_same_evidence(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One", {"a.txt": "1"})
    repo.write("b.txt", "x")
    english, chinese = asked(desk, repo), asked(desk, repo, locale="zh-CN")
    assert [item["citations"] for item in english["state"]] == [item["citations"] for item in chinese["state"]]
    assert english["evidence"] == chinese["evidence"]
    assert texts(english)[0] != texts(chinese)[0]
    assert "One" in texts(chinese)[0]


# --- continuing here --------------------------------------------------------------------------------------------------


class Moving:
    """A caller in front of which somebody else commits after each of the first ``times`` readings."""

    def __init__(self, desk: Desk, times: int) -> None:
        self.desk, self.times, self.made = desk, times, 0

    def __call__(self, op: Any, ask: Any) -> Any:
        answer = self.desk.application.caller(HOST)(op, ask)
        if op is CONTINUE_HANDOFF and self.made < self.times:
            self.made += 1
            evidence = [{"label": "n", "source_type": "content", "content": f"Note {self.made}."}]
            self.desk.call(
                HAND_OFF_NOW.name,
                scope_id=SCOPE,
                commit=True,
                evidence=evidence,
                **draft([say("Theirs.", inline("n"))], objective=f"Theirs {self.made}"),
            )
        return answer


def test_a_comparison_never_belongs_to_another_revision_than_the_one_shown(desk: Desk, make_repo: MakeRepo) -> None:
    """Catches the relation of revision 1 shown beside the words of revision 2, which cites no commit at all."""
    repo = make_repo()
    repo.commit("One")
    hand_off(desk, repo)
    moving = Moving(desk, 1)
    with repo.reader() as git:
        answer = continue_here(moving, Checkout(git), SCOPE)
    assert moving.made == 1
    assert answer.content is not None
    assert answer.content.objective == "Theirs 1"
    assert answer.workspace is not None
    assert answer.workspace.relation == "unknown"


def test_a_scope_that_keeps_moving_is_a_conflict_in_the_end(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One")
    hand_off(desk, repo)
    with repo.reader() as git, pytest.raises(PassdownError) as caught:
        continue_here(Moving(desk, 100), Checkout(git), SCOPE)
    assert caught.value.code == "handoff_conflict"


def test_continuing_where_nothing_was_handed_off_is_empty(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    found = continued(desk, repo)
    assert (found["status"], found["workspace"]) == ("empty", None)


def test_a_lost_file_and_a_required_next_action_refuse(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One")
    repo.write("precious.txt", "x")
    hand_off(desk, repo, next_action="Go on.")
    assert continued(desk, repo, require_usable=True, objective="The queue")["objective_relation"] == "same"
    os.unlink(repo.path / "precious.txt")
    assert continued(desk, repo)["workspace"]["uncommitted"]["gone"] == ["precious.txt"]
    with pytest.raises(PassdownError) as caught:
        continued(desk, repo, require_usable=True)
    assert caught.value.members["reasons"] == ["uncommitted_files_gone"]


def test_a_checkout_that_went_another_way_never_gets_the_old_next_action(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    base = repo.commit("One")
    repo.commit("Two")
    hand_off(desk, repo, next_action="Go on.")
    repo.git("checkout", "-q", "-b", "elsewhere", base)
    repo.commit("Other")
    found = continued(desk, repo)
    assert (found["workspace"]["relation"], found["next_action_usable"]) == ("diverged", False)


def test_a_worktree_source_that_is_not_in_this_store_is_not_compared(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("One")
    value = hand_off(desk, repo)["prepared"]["content"]
    call = desk.application.caller(HOST)
    assert recorded_worktree(call, SCOPE, validate(HandoffContent, value)) is not None
    assert recorded_worktree(call, "else", validate(HandoffContent, value)) is None


def test_a_handoff_repeated_with_nothing_new_makes_no_revision(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("Subject", {"a.txt": "1"})
    repo.write("left.txt", "x")
    first = hand_off(desk, repo, state=["Half done"], next_action="Go on")
    again = hand_off(desk, repo)
    assert (first["committed"]["status"], again["committed"]["status"]) == ("committed", "unchanged")
    assert again["committed"]["handoff_ref"] == first["committed"]["handoff_ref"]
    assert again["prepared"]["content"] == first["prepared"]["content"]
    assert desk.numbers() == [1]


@pytest.mark.parametrize("change", ["commit", "worktree", "push", "words"])
def test_a_handoff_after_any_change_makes_a_revision(desk: Desk, make_repo: MakeRepo, change: str) -> None:
    repo = make_repo()
    oid = repo.commit("Subject", {"a.txt": "1"})
    hand_off(desk, repo)
    if change == "commit":
        repo.commit("Another", {"a.txt": "2"})
    elif change == "worktree":
        repo.write("left.txt", "x")
    elif change == "push":
        repo.git("update-ref", "refs/remotes/origin/main", oid)
    answer = hand_off(desk, repo, **({"next_action": "Go on"} if change == "words" else {}))
    assert answer["committed"]["status"] == "committed"
    assert desk.numbers() == [2, 1]


def test_a_plain_handoff_keeps_what_blocks_and_what_was_proposed(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    first = repo.commit("First", {"a.txt": "1"})
    hand_off(desk, repo, blocked=["Waiting for the key"], next_action="Ask for it")
    repo.commit("Unrelated", {"b.txt": "2"})
    value = hand_off(desk, repo)["prepared"]["content"]
    assert (value["disposition"], value["next_action"]["text"]) == ("blocked", "Ask for it")
    assert texts(value)[0] == "Waiting for the key"
    # The words keep the evidence that they were said on; only git's own statements are made anew.
    assert value["state"][0]["citations"][0]["source_ref"]["source_id"].startswith(first)
    assert sum("Unrelated" in text for text in texts(value)) == 1
    assert not any("First" in text for text in texts(value))


def test_words_replace_earlier_words_and_the_next_action_with_them(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("First", {"a.txt": "1"})
    hand_off(desk, repo, blocked=["Waiting for the key"], next_action="Ask for it")
    value = hand_off(desk, repo, state=["The key is here"])["prepared"]["content"]
    assert (value["disposition"], value["next_action"]) == ("continuable", None)
    assert "Waiting for the key" not in texts(value)


def test_the_same_words_repeated_make_no_revision(desk: Desk, make_repo: MakeRepo) -> None:
    repo = make_repo()
    repo.commit("First", {"a.txt": "1"})
    hand_off(desk, repo)
    for _ in range(3):
        hand_off(desk, repo, state=["Half done"], next_action="Go on")
    assert desk.numbers() == [2, 1]


def test_the_newest_reading_of_the_worktree_is_compared_not_the_one_that_kept_words_cite(
    desk: Desk, make_repo: MakeRepo
) -> None:
    repo = make_repo()
    repo.commit("First", {"a.txt": "1"})
    repo.write("early.txt", "x")
    hand_off(desk, repo, state=["Half done"])
    os.remove(repo.path / "early.txt")
    repo.write("late.txt", "y")
    hand_off(desk, repo)
    uncommitted = continued(desk, repo)["workspace"]["uncommitted"]
    assert (uncommitted["present"], uncommitted["gone"]) == (1, [])


def test_a_worktree_that_could_not_be_read_whole_is_never_called_clean(desk: Desk, make_repo: MakeRepo) -> None:
    facts = GitFacts(
        commits=(),
        tags={},
        worktree={"head": "a" * 40, "entries": [], "omitted_paths": 0, "omitted_bytes": 0},
        shallow=False,
        more_history=False,
        notes=("unreadable_folder",),
    )
    for locale, clean in (("en", "Nothing is uncommitted."), ("zh-CN", "没有未提交的改动。")):
        made = git_draft(facts, locale)  # type: ignore[arg-type]
        assert clean not in [statement["text"] for statement in made.state]
        assert len(made.omissions) == 1
