"""The state of a worktree. Catches: one id at two places, a choice that is guessed at, a file that is half written."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import Repo

from passdown.git.locate import Repository, find_repository
from passdown.git.state import (
    SCHEMA,
    STATE_BYTES,
    LoadedState,
    WorktreeState,
    load_state,
    place_fingerprint,
    save_state,
)
from passdown.kernel.errors import PassdownError

MakeRepo = Callable[..., Repo]
STATE = WorktreeState("ws_1", "scp_1", "/data/store.sqlite")


def at(path: Path) -> Repository:
    return find_repository(path)


def file_of(repository: Repository) -> Path:
    return repository.git_dir / "passdown" / "worktree.json"


def unreadable(repository: Repository) -> None:
    with pytest.raises(PassdownError) as caught:
        load_state(repository)
    assert (caught.value.code, caught.value.members) == ("no_current_workstream", {"rule": "unreadable"})


def test_a_worktree_without_a_choice_is_absent_and_a_saved_choice_is_present(repo: Repo) -> None:
    assert load_state(at(repo.path)) == LoadedState(None, "absent")
    save_state(at(repo.path), STATE)
    assert load_state(at(repo.path)) == LoadedState(STATE, "present")
    other = WorktreeState("ws_1", None, "https://example.com/")
    save_state(at(repo.path), other)
    assert load_state(at(repo.path)) == LoadedState(other, "present")


def test_the_file_is_private_whole_and_alone(repo: Repo) -> None:
    save_state(at(repo.path), STATE)
    path = file_of(at(repo.path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["worktree.json"]
    document = json.loads(path.read_bytes())
    assert {name: document[name] for name in ("schema", "workspace_instance_id", "scope_id", "store")} == {
        "schema": SCHEMA, "workspace_instance_id": "ws_1", "scope_id": "scp_1", "store": "/data/store.sqlite",
    }  # fmt: skip
    assert repo.git("status", "--porcelain") == b""


def test_a_renamed_folder_keeps_its_choice(repo: Repo, tmp_path: Path) -> None:
    save_state(at(repo.path), STATE)
    repo.path.rename(tmp_path / "renamed")
    moved = at(tmp_path / "renamed")
    assert load_state(moved) == LoadedState(STATE, "moved")
    save_state(moved, STATE)
    assert load_state(moved).reason == "present"


def test_a_copied_folder_is_asked_again_and_the_original_is_not(repo: Repo, tmp_path: Path) -> None:
    save_state(at(repo.path), STATE)
    shutil.copytree(repo.path, tmp_path / "copy", symlinks=True)
    assert load_state(at(tmp_path / "copy")) == LoadedState(None, "copied")
    assert load_state(at(repo.path)) == LoadedState(STATE, "present")


def test_a_copy_whose_original_was_given_another_id_or_is_gone_is_only_moved(repo: Repo, tmp_path: Path) -> None:
    save_state(at(repo.path), STATE)
    shutil.copytree(repo.path, tmp_path / "copy", symlinks=True)
    save_state(at(repo.path), WorktreeState("ws_2", None, "s"))
    assert load_state(at(tmp_path / "copy")).reason == "moved"
    shutil.rmtree(repo.path / ".git")
    assert load_state(at(tmp_path / "copy")).reason == "moved"


def test_a_copy_is_not_used_while_the_state_of_the_original_cannot_be_read(repo: Repo, tmp_path: Path) -> None:
    save_state(at(repo.path), STATE)
    shutil.copytree(repo.path, tmp_path / "copy", symlinks=True)
    file_of(at(repo.path)).write_text("{")
    assert load_state(at(tmp_path / "copy")) == LoadedState(None, "copied")


def test_linked_worktrees_have_states_of_their_own_that_follow_a_move(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    save_state(at(repo.path), STATE)
    linked = WorktreeState("ws_2", "scp_2", "s")
    assert load_state(at(tmp_path / "linked")).reason == "absent"
    save_state(at(tmp_path / "linked"), linked)
    assert load_state(at(repo.path)) == LoadedState(STATE, "present")
    repo.git("worktree", "move", str(tmp_path / "linked"), str(tmp_path / "elsewhere"))
    assert load_state(at(tmp_path / "elsewhere")) == LoadedState(linked, "moved")


def test_a_copied_linked_worktree_that_shares_the_git_directory_is_asked_again(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    save_state(at(tmp_path / "linked"), STATE)
    shutil.copytree(tmp_path / "linked", tmp_path / "copy")
    assert at(tmp_path / "copy").git_dir == at(tmp_path / "linked").git_dir
    assert load_state(at(tmp_path / "copy")) == LoadedState(None, "copied")
    assert load_state(at(tmp_path / "linked")) == LoadedState(STATE, "present")


@pytest.mark.parametrize("name", [b"caf\xe9", b'new\nline "quoted"', "日本".encode()])
def test_any_name_of_the_folder_can_be_recorded(tmp_path: Path, name: bytes) -> None:
    repo = Repo(tmp_path / os.fsdecode(name))
    save_state(at(repo.path), STATE)
    assert load_state(at(repo.path)) == LoadedState(STATE, "present")
    shutil.copytree(repo.path, tmp_path / "copy", symlinks=True)
    assert load_state(at(tmp_path / "copy")).reason == "copied"


def test_a_damaged_file_is_unreadable_and_never_guessed_at(repo: Repo) -> None:
    save_state(at(repo.path), STATE)
    path = file_of(at(repo.path))
    good = json.loads(path.read_bytes())
    damaged: list[bytes] = [
        b"", b"{", b"[]", b"null", b"\xff", b"[" * 60_000, path.read_bytes()[:-3],
        path.read_bytes().replace(b'"ws_1",', b'"ws_1", "workspace_instance_id": "ws_2",'),
    ]  # fmt: skip
    changes: list[dict[str, object]] = [
        {"schema": "passdown.worktree.v2"}, {"scope_id": 1}, {"scope_id": ""}, {"scope_id": "a\nb"}, {"scope_id": " a"},
        {"workspace_instance_id": None}, {"workspace_instance_id": "x" * 257}, {"store": ""}, {"store": ["s"]},
        {"store": "\ud800"}, {"worktree": "/elsewhere"}, {"git_dir": 5}, {"worktree": "relative"},
        {"fingerprint": "0" * 32}, {"worktree": "\ud800"}, {"extra": 1},
    ]  # fmt: skip
    damaged += [json.dumps({**good, **change}).encode() for change in changes]
    damaged += [json.dumps({key: good[key] for key in good if key != missing}).encode() for missing in good]
    for data in damaged:
        path.write_bytes(data)
        unreadable(at(repo.path))


def test_a_file_at_the_size_limit_is_read_and_one_byte_more_is_not(repo: Repo) -> None:
    save_state(at(repo.path), STATE)
    path = file_of(at(repo.path))
    data = path.read_bytes()
    path.write_bytes(data + b" " * (STATE_BYTES - len(data)))
    assert load_state(at(repo.path)).state == STATE
    path.write_bytes(data + b" " * (STATE_BYTES - len(data) + 1))
    unreadable(at(repo.path))


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "linked folder", "file for folder"])
def test_something_else_in_the_place_of_the_file_is_unreadable_and_not_written_through(
    repo: Repo, tmp_path: Path, kind: str
) -> None:
    path = file_of(at(repo.path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    save_state(at(repo.path), STATE)
    valid = path.read_bytes()
    shutil.rmtree(path.parent)
    if kind == "linked folder":
        (elsewhere / "worktree.json").write_bytes(valid)
        path.parent.symlink_to(elsewhere)
    elif kind == "file for folder":
        path.parent.write_text("x")
    else:
        path.parent.mkdir()
        (elsewhere / "target").write_bytes(valid)
        {"link": lambda: path.symlink_to(elsewhere / "target"), "pipe": lambda: os.mkfifo(path),
         "folder": lambda: path.mkdir()}[kind]()  # fmt: skip
    unreadable(at(repo.path))
    before = {entry.name: entry.read_bytes() for entry in elsewhere.iterdir()}
    if kind in ("link", "pipe"):
        save_state(at(repo.path), STATE)
        assert load_state(at(repo.path)).state == STATE
    else:
        with pytest.raises(PassdownError) as caught:
            save_state(at(repo.path), STATE)
        assert caught.value.code == "file_not_writable"
    assert {entry.name: entry.read_bytes() for entry in elsewhere.iterdir()} == before


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    save_state(at(repo.path), STATE)
    before = file_of(at(repo.path)).read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            with pytest.raises(PassdownError) as caught:
                save_state(at(repo.path), WorktreeState("ws_9", None, "s"))
        assert caught.value.code == "file_not_writable"
        assert file_of(at(repo.path)).read_bytes() == before
        assert [entry.name for entry in file_of(at(repo.path)).parent.iterdir()] == ["worktree.json"]


def test_values_at_their_limits_are_saved_and_one_past_them_refused(repo: Repo) -> None:
    longest = WorktreeState("w" * 256, "s" * 256, "\U0001f600" * 4_096)
    save_state(at(repo.path), longest)
    assert load_state(at(repo.path)).state == longest
    wrong = {
        "workspace_instance_id": WorktreeState("w" * 257, None, "s"),
        "scope_id": WorktreeState("w", "s" * 257, "s"),
        "store": WorktreeState("w", None, "s" * 4_097),
        "schema": WorktreeState("w", None, "s", schema="other"),
    }
    for field, state in wrong.items():
        with pytest.raises(PassdownError) as caught:
            save_state(at(repo.path), state)
        assert (caught.value.code, caught.value.members["field"]) == ("invalid_request", field)
    assert load_state(at(repo.path)).state == longest


def test_the_fingerprint_names_the_place_without_telling_it(repo: Repo, make_repo: MakeRepo) -> None:
    one, other = at(repo.path), at(make_repo("other").path)
    assert place_fingerprint(one) == place_fingerprint(at(repo.path / ".")) != place_fingerprint(other)
    assert len(place_fingerprint(one)) == 32
    assert set(place_fingerprint(one)) <= set("0123456789abcdef")
