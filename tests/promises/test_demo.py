"""The demonstration on real repositories of every kind: it ends well, and nothing of the original is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_support import PASSDOWN
from git_support import Repo, plain_environment, snapshot

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Shown:
    """What a run printed and where it wrote."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def page(self) -> str:
        return (self.folder / "report.en.md").read_text(encoding="utf-8")


Demonstrate = Callable[..., Shown]


@pytest.fixture
def demonstrate(tmp_path: Path) -> Demonstrate:
    """Runs the demo from a copy of it, since it writes beside itself, and compares the repository before and after."""
    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copytree(ROOT / "demo", tree / "demo", ignore=shutil.ignore_patterns("__pycache__"))

    def run(target: Path, **changes: str | None) -> Shown:
        before = snapshot(target)
        environment = {**plain_environment(HOME=str(tmp_path / "home")), **changes}
        done = subprocess.run(
            [sys.executable, "-m", "demo", str(target)],
            cwd=tree,
            env={name: value for name, value in environment.items() if value is not None},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert snapshot(target) == before, "the original was touched"
        return Shown(done.returncode, done.stdout.decode(), done.stderr.decode(), tree / ".demo")

    return run


def assert_whole(shown: Shown) -> None:
    """It ended well, and its files check out with the installed command and nothing else."""
    assert (shown.code, shown.err) == (0, ""), shown
    names = ["report.json", "report.en.md", "report.zh-CN.md"]
    done = subprocess.run(
        [PASSDOWN, "report", "verify", *(str(shown.folder / name) for name in names)],
        env=plain_environment(HOME="/nonexistent"),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    # The text of a Markdown file is not covered by what can be checked from the file, and the mark says so.
    assert [line.split()[0] for line in done.stdout.decode().splitlines()] == ["✔", "~", "~"]
    assert "./run serve" in shown.out.splitlines()[-1]


def test_an_ordinary_repository_is_handed_off_by_its_commits(tmp_path: Path, demonstrate: Demonstrate) -> None:
    repo = Repo(tmp_path / "ordinary")
    for number in range(1, 14):
        repo.commit(f"Step {number} of thirteen", {f"f{number}": str(number)})
    repo.git("tag", "v1.0")
    shown = demonstrate(repo.path)
    assert_whole(shown)
    assert "13 commits, 0 uncommitted paths" in shown.out
    assert "Committed: Step 12 of thirteen" in shown.out
    assert "Tag v1.0 names this commit: Step 13 of thirteen" in shown.out
    assert "+ ahead: HEAD has newer commits than the handoff cites" in shown.out
    assert repo.text("rev-parse", "HEAD")[:12] in shown.page


def test_an_empty_repository_can_be_shown(tmp_path: Path, demonstrate: Demonstrate) -> None:
    shown = demonstrate(Repo(tmp_path / "empty").path)
    assert_whole(shown)
    assert "There is no commit yet" in shown.out


def test_a_shallow_clone_can_be_shown_and_says_so(tmp_path: Path, demonstrate: Demonstrate) -> None:
    origin = Repo(tmp_path / "origin")
    for number in range(5):
        origin.commit(f"Step {number}")
    origin.git("clone", "-q", "--depth", "2", origin.path.as_uri(), "../shallow")
    shown = demonstrate(tmp_path / "shallow")
    assert_whole(shown)
    assert "The clone at hand is shallow" in shown.out
    assert "history before its oldest commit was not available" in shown.page.replace("\\", "")


def test_uncommitted_and_deleted_files_are_read_and_left_alone(tmp_path: Path, demonstrate: Demonstrate) -> None:
    repo = Repo(tmp_path / "dirty")
    repo.commit("First", {"kept.txt": "1", "deleted.txt": "2", "changed.txt": "3"})
    (repo.path / "deleted.txt").unlink()
    repo.write("changed.txt", "4")
    repo.write("new/fresh.txt", "5")
    (repo.path / "link").symlink_to("kept.txt")
    repo.write("staged.txt", "6")
    repo.git("add", "staged.txt")
    shown = demonstrate(repo.path)
    assert_whole(shown)
    assert "1 commit, 5 uncommitted paths" in shown.out
    for path in ("deleted.txt", "changed.txt", "new/fresh.txt", "link", "staged.txt"):
        assert path in shown.out
    assert (shown.folder / "clone/new/fresh.txt").read_text() == "5"
    assert not (shown.folder / "clone/deleted.txt").exists()
    assert "GONE now" not in shown.out


def test_a_copied_file_does_not_write_through_a_link_of_the_repository(
    tmp_path: Path, demonstrate: Demonstrate
) -> None:
    """Tracked links to places outside, replaced by a folder and a file in the worktree: both stay in the clone."""
    outside = tmp_path / "outside"
    outside.mkdir()
    repo = Repo(tmp_path / "linked")
    (repo.path / "docs").symlink_to(outside)
    (outside / "mine.txt").write_text("mine")
    (repo.path / "note.txt").symlink_to(outside / "mine.txt")
    repo.commit("Links to places elsewhere")
    for name in ("docs", "note.txt"):
        (repo.path / name).unlink()
    repo.write("docs/escaped.txt", "x")
    repo.write("note.txt", "overwritten")
    shown = demonstrate(repo.path)
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"mine.txt": "mine"}
    assert (shown.folder / "clone/note.txt").read_text() == "overwritten"
    assert_whole(shown)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_another_user_can_be_shown(tmp_path: Path, demonstrate: Demonstrate) -> None:
    repo = Repo(tmp_path / "theirs")
    repo.commit("Theirs", {"a": "a"})
    for path in (repo.path, *repo.path.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    shown = demonstrate(repo.path)
    assert_whole(shown)
    assert "Committed: Theirs" in shown.out


def test_programs_that_a_repository_names_are_never_started(tmp_path: Path, demonstrate: Demonstrate) -> None:
    repo = Repo(tmp_path / "hostile")
    repo.commit("First", {"a.txt": "a", ".gitattributes": "*.txt filter=evil diff=evil merge=evil\n"})
    alarm = tmp_path / "alarm"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> "{alarm}"\ncat\n')
    program.chmod(0o755)
    for key in (
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external", "filter.evil.clean",
        "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver",
        "credential.helper", "gpg.program", "uploadpack.packObjectsHook", "core.alternateRefsCommand",
    ):  # fmt: skip
        repo.git("config", key, str(program))
    repo.git("config", "filter.evil.required", "true")
    repo.git("config", "core.hooksPath", str(repo.path / ".git/hooks"))
    for hook in ("post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        shutil.copy(program, repo.path / ".git/hooks" / hook)
    repo.write("a.txt", "changed")
    alarm.unlink(missing_ok=True)
    shown = demonstrate(repo.path)
    assert not alarm.exists(), alarm.read_text()
    assert_whole(shown)


@pytest.mark.parametrize("home", [None, ""], ids=["unset", "empty"])
def test_without_a_home_it_is_shown_all_the_same(tmp_path: Path, demonstrate: Demonstrate, home: str | None) -> None:
    repo = Repo(tmp_path / "homeless")
    repo.commit("First", {"a": "a"})
    assert_whole(demonstrate(repo.path, HOME=home, GIT_CONFIG_GLOBAL=None))


def test_it_runs_again_over_its_own_output(tmp_path: Path, demonstrate: Demonstrate) -> None:
    repo = Repo(tmp_path / "again")
    repo.commit("First", {"a": "a"})
    assert_whole(demonstrate(repo.path))
    repo.commit("Second", {"b": "b"})
    shown = demonstrate(repo.path)
    assert_whole(shown)
    assert "2 commits" in shown.out


def test_a_folder_without_a_repository_is_refused(tmp_path: Path, demonstrate: Demonstrate) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    shown = demonstrate(folder)
    assert shown.code == 1
    assert shown.err.startswith("not_a_repository: ")
    assert not shown.folder.exists()


def test_the_example_project_has_a_workstream_in_every_state(tmp_path: Path, demonstrate: Demonstrate) -> None:
    repo = Repo(tmp_path / "beside")
    repo.commit("First", {"a": "a"})
    shown = demonstrate(repo.path)
    done = subprocess.run(
        [PASSDOWN, "report", "--project", "example-shop", "--data", str(shown.folder / "data")],
        env=plain_environment(HOME=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    page = done.stdout.decode()
    assert "Example" in page
    for status in ("blocked", "continuable", "complete", "no handoff"):
        assert status in page
    assert "unproved" in page
