"""A repository that wants to run something, or to be written to. Each trap leaves a marker file; none may appear.

The traps are proved live with plain git first: a trap that cannot spring proves nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import Repo, everything, snapshot

from passdown.git.facts import PathChange
from passdown.git.locate import find_repository
from passdown.git.state import WorktreeState, load_state, save_state
from passdown.kernel.errors import PassdownError

MakeRepo = Callable[..., Repo]


class Traps:
    """Programs that leave a marker when they run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.markers = folder / "markers"
        self.markers.mkdir(parents=True)

    def program(self, name: str) -> Path:
        path = self.folder / name
        end = "exec cat" if name in ("clean", "smudge") else "exit 1"
        path.write_text(f"#!/bin/sh\n: > '{self.markers / name}'\n{end}\n")
        path.chmod(0o755)
        return path

    def sprung(self) -> set[str]:
        found = {path.name for path in self.markers.iterdir()}
        for path in self.markers.iterdir():
            path.unlink()
        return found


HOOKS = [
    "post-index-change",
    "reference-transaction",
    "post-checkout",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "query-watchman",
]

CONFIG = """
[core]
    fsmonitor = {fsmonitor}
    hooksPath = {folder}
    sshCommand = {sshcommand}
    gitProxy = {gitproxy}
    askPass = {askpass}
    pager = {pager}
    editor = {editor}
    alternateRefsCommand = {alternaterefs}
    attributesFile = {folder}/attributes
    excludesFile = {folder}/excludes
    worktree = {folder}
    preloadIndex = false
[filter "trap"]
    clean = {clean}
    smudge = {smudge}
    required = true
[filter "process"]
    process = {process}
[diff]
    external = {external}
    renames = true
    submodule = log
[diff "trap"]
    command = {command}
    textconv = {textconv}
    cachetextconv = true
[merge "trap"]
    driver = {driver}
[credential]
    helper = {credential}
[gpg]
    program = {gpg}
[gpg "ssh"]
    program = {gpgssh}
[log]
    showSignature = true
    mailmap = true
[mailmap]
    file = {folder}/mailmap
[alias]
    status = !{alias}
    log = !{alias}
    rev-list = !{alias}
[include]
    path = {folder}/included
[includeIf "gitdir:/"]
    path = {folder}/included
[uploadpack]
    packObjectsHook = {packobjects}
[remote "origin"]
    url = ext::{remote}
    uploadpack = {uploadpack}
    fetch = +refs/heads/*:refs/remotes/origin/*
[submodule "s"]
    update = !{submodule}
    url = ext::{remote}
[submodule]
    recurse = true
[status]
    submoduleSummary = true
    showUntrackedFiles = no
[interactive]
    diffFilter = {difffilter}
[pager]
    log = {pager}
    status = {pager}
[trailer "x"]
    command = {trailer}
[extensions]
    worktreeConfig = true
[tar "x"]
    command = {tar}
[trace2]
    normalTarget = {markers}/trace
    eventTarget = {markers}/trace
[maintenance]
    auto = true
[gc]
    auto = 1
    autoDetach = false
"""
KEYS = [
    "fsmonitor", "sshcommand", "gitproxy", "askpass", "pager", "editor", "alternaterefs", "clean", "smudge", "process",
    "external", "command", "textconv", "driver", "credential", "gpg", "gpgssh", "alias", "packobjects", "remote",
    "uploadpack", "submodule", "difffilter", "trailer", "tar",
]  # fmt: skip


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return Traps(tmp_path / "traps")


@pytest.fixture
def hostile(repo: Repo, traps: Traps) -> tuple[Repo, str]:
    """A repository in which everything that git can be told to run is a trap, with changes that make git look."""
    files: dict[str, bytes | str] = {"a.txt": "1\n", "b.dat": "1\n", "c.txt": "1\n", "s/.keep": ""}
    files[".gitmodules"] = '[submodule "s"]\n path = s\n url = ext::sh\n update = !false\n'
    oid = repo.commit("first", files)
    repo.commit("second", {"a.txt": "2\n"})
    raw = repo.git("cat-file", "commit", "HEAD")
    head, _, message = raw.partition(b"\n\n")
    signed = head + b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n" + message
    repo.git("update-ref", "refs/heads/main", repo.raw_commit(signed))
    repo.git("update-ref", "refs/remotes/origin/main", oid)
    repo.git("tag", "v1")
    attributes = "*.txt filter=trap diff=trap merge=trap\n*.dat filter=process diff=trap\n"
    repo.write(".gitattributes", attributes)
    for name in ("attributes", "excludes", "mailmap", "included"):
        (traps.folder / name).write_text("")
    (traps.folder / "attributes").write_text(attributes)
    (traps.folder / "included").write_text(f"[core]\n fsmonitor = {traps.program('included-fsmonitor')}\n")
    repo.write(".git/info/attributes", attributes)
    hooks = repo.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(traps.program(name), hooks / name)
    values = {key: str(traps.program(key)) for key in KEYS}
    text = CONFIG.format(folder=traps.folder, markers=traps.markers, **values)
    (repo.path / ".git" / "config").write_text("[core]\n repositoryFormatVersion = 1\n" + text)
    (repo.path / ".git" / "config.worktree").write_text(f"[core]\n fsmonitor = {values['fsmonitor']}\n")
    repo.write("a.txt", "3\n")
    repo.write("new.txt", "new\n")
    os.utime(repo.path / "c.txt", (5, 5))  # unchanged, but git has to read it to know
    os.utime(repo.path / "b.dat", (5, 5))
    assert traps.sprung() == set()
    return repo, oid


def test_the_traps_are_live(hostile: tuple[Repo, str], traps: Traps) -> None:
    repo, _ = hostile
    work = f"--work-tree={repo.path}"
    codes = (0, 1, 128, 129)
    repo.git(work, "status", ok=codes)
    assert {"clean", "process"} & (status := traps.sprung())
    assert {"fsmonitor", "included-fsmonitor"} & status
    repo.git(work, "diff", "HEAD~1", "HEAD", ok=codes)
    assert {"command", "external"} & traps.sprung()
    repo.git(work, "log", "-p", "--ext-diff", ok=codes)
    assert {"gpg", "command", "external"} & traps.sprung()
    repo.git(
        "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks", work, "status", ok=codes
    )
    assert {"clean", "process"} & traps.sprung()  # switches alone do not help


def test_no_trap_springs_and_nothing_is_written_whatever_is_asked(hostile: tuple[Repo, str], traps: Traps) -> None:
    repo, oid = hostile
    before = snapshot(repo.path)
    with repo.reader() as git:
        everything(git, oid)
        status = git.status()
        commits = git.commits(9)
    assert traps.sprung() == set()
    assert snapshot(repo.path) == before
    assert {"a.txt", "new.txt"} <= {entry.path for entry in status.entries}
    assert set(status.notes) == {
        "filter_not_run", "repository_attributes_not_read", "repository_excludes_not_read",
    }  # fmt: skip
    assert [commit.subject for commit in commits] == ["second", "first"]
    assert commits[0].paths == (PathChange("a.txt", 1, 1),)


def test_no_trap_springs_while_the_state_of_the_worktree_is_kept(hostile: tuple[Repo, str], traps: Traps) -> None:
    repository = find_repository(hostile[0].path)
    save_state(repository, WorktreeState("ws_1", None, "s"))
    assert load_state(repository).reason == "present"
    assert traps.sprung() == set()


def test_missing_content_of_a_partial_clone_is_not_fetched(repo: Repo, traps: Traps) -> None:
    repo.commit("first", {"a.txt": "1\n"})
    oid = repo.commit("second", {"a.txt": "2\n"})
    blob = repo.text("rev-parse", "HEAD~1:a.txt")
    (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    trap = traps.program("uploadpack")
    (repo.path / ".git" / "config").write_text(
        "[core]\n repositoryFormatVersion = 1\n[extensions]\n partialClone = origin\n"
        f'[remote "origin"]\n url = {repo.path}\n promisor = true\n'
        f" partialCloneFilter = blob:none\n uploadpack = {trap}\n"
    )
    repo.git("show", "--numstat", "HEAD", ok=(0, 1, 128))
    assert traps.sprung() == {"uploadpack"}  # the trap is live
    with repo.reader() as git:
        assert git.commit(oid).paths == (PathChange("a.txt", None, None),)
        assert git.commit(oid).paths_total == 1
        everything(git, oid)
    assert traps.sprung() == set()


def test_missing_trees_of_a_partial_clone_make_the_paths_unread(repo: Repo) -> None:
    repo.commit("first", {"a.txt": "1\n"})
    oid = repo.commit("second", {"a.txt": "2\n"})
    tree = repo.text("rev-parse", "HEAD~1^{tree}")
    (repo.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    repo.git("config", "remote.origin.promisor", "true")
    last = repo.commit("third", {"b.txt": "3\n"})
    with repo.reader() as git:
        assert (git.commit(oid).paths, git.commit(oid).paths_total) == ((), None)
        assert git.commit(last).paths == (PathChange("b.txt", None, None),)
        assert [commit.paths_total for commit in git.commits(2)] == [1, None]


def test_missing_content_of_a_whole_repository_is_an_error(repo: Repo) -> None:
    repo.commit("first", {"a.txt": "1\n"})
    repo.commit("second", {"a.txt": "2\n"})
    blob = repo.text("rev-parse", "HEAD~1:a.txt")
    (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with repo.reader() as git:
        assert len(git.commits(9, paths=False)) == 2
        with pytest.raises(PassdownError) as caught:
            git.commits(9)
    assert (caught.value.code, caught.value.members["operation"]) == ("git_failed", "diff-tree")


def test_the_index_is_not_refreshed_and_a_shared_index_keeps_its_time(repo: Repo) -> None:
    oid = repo.commit("x", {"a.txt": "1", "b": "2"})
    repo.git("update-index", "--split-index")
    shared = next((repo.path / ".git").glob("sharedindex.*"))
    os.utime(shared, (5, 5))
    os.utime(repo.path / "a.txt", (5, 5))
    before = snapshot(repo.path)
    with repo.reader() as git:
        everything(git, oid)
    assert snapshot(repo.path) == before
    assert shared.stat().st_mtime == 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_user_is_read(repo: Repo) -> None:
    oid = repo.commit("x", {"a.txt": "1"})
    for root, folders, files in os.walk(repo.path):
        for name in [".", *folders, *files]:
            os.chown(os.path.join(root, name), 65_534, 65_534, follow_symlinks=False)
    repo.git("status", ok=(128,))  # plain git refuses
    with repo.reader() as git:
        assert git.head().oid == oid
        assert git.status().clean
        everything(git, oid)


def test_settings_of_git_in_the_environment_have_no_effect(
    repo: Repo, traps: Traps, monkeypatch: pytest.MonkeyPatch, make_repo: MakeRepo
) -> None:
    oid = repo.commit("x", {"a.txt": "1"})
    other = make_repo("other")
    repo.write("a.txt", "2")
    for name, value in {
        "GIT_DIR": str(other.path / ".git"),
        "GIT_WORK_TREE": str(other.path),
        "GIT_INDEX_FILE": str(other.path / "index"),
        "GIT_OBJECT_DIRECTORY": str(other.path),
        "GIT_NAMESPACE": "n",
        "GIT_EXTERNAL_DIFF": str(traps.program("external")),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(traps.program("fsmonitor")),
        "GIT_TRACE": str(traps.markers / "trace"),
        "GIT_TRACE2": str(traps.markers / "trace2"),
    }.items():
        monkeypatch.setenv(name, value)
    with repo.reader() as git:
        assert git.head().oid == oid
        assert [entry.path for entry in git.status().entries] == ["a.txt"]
        everything(git, oid)
    assert traps.sprung() == set()


def test_objects_borrowed_from_another_repository_are_found(repo: Repo, tmp_path: Path) -> None:
    oid = repo.commit("x", {"a.txt": "1"})
    repo.git("clone", "-q", "--shared", ".", str(tmp_path / "borrower"))
    borrower = Repo(tmp_path / "borrower", create=False)
    (borrower.path / ".git" / "objects" / "info" / "alternates").write_text("../../../repo/.git/objects\n")
    assert borrower.text("rev-parse", "HEAD") == oid
    with borrower.reader() as git:
        everything(git, oid)
        assert git.commit(oid).paths_total == 1


def test_the_reader_does_not_load_what_a_hook_cannot_afford() -> None:
    code = (
        "import sys, passdown.git.reader, passdown.git.state;"
        "heavy = {'pydantic', 'sqlalchemy', 'asyncio', 'ssl', 'email', 'importlib.metadata'} & set(sys.modules);"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
