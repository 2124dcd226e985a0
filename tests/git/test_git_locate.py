"""Finding the repository, without git. Catches: a folder taken for a repository, or one whose format is misread."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_support import Repo

from passdown.git.locate import find_repository
from passdown.kernel.errors import PassdownError

MakeRepo = Callable[..., Repo]


def refused(start: Path) -> tuple[str, dict[str, object]]:
    with pytest.raises(PassdownError) as caught:
        find_repository(start)
    return caught.value.code, {name: value for name, value in caught.value.members.items() if name != "guidance"}


def test_a_folder_deep_inside_belongs_to_the_repository_around_it(repo: Repo) -> None:
    repo.write("a/b/c.txt", "x")
    found = find_repository(repo.path / "a" / "b")
    assert (found.worktree, found.git_dir, found.common_dir) == (repo.path, repo.path / ".git", repo.path / ".git")
    assert found.object_format == "sha1"
    assert find_repository(repo.path / "a" / "b" / "c.txt") == found


def test_a_repository_inside_a_repository_is_the_nearer_one(repo: Repo) -> None:
    inner = Repo(repo.path / "vendor" / "inner")
    assert find_repository(inner.path).worktree == inner.path


def test_a_linked_worktree_has_its_own_git_directory_and_shares_the_common_one(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    found = find_repository(tmp_path / "linked")
    assert found.worktree == tmp_path / "linked"
    assert str(found.git_dir) == Repo(found.worktree, create=False).text("rev-parse", "--absolute-git-dir")
    assert found.common_dir == repo.path / ".git"


def test_a_linked_worktree_of_a_bare_repository_is_found(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = Repo(tmp_path / "bare.git", create=False)
    bare.git("worktree", "add", "-q", str(tmp_path / "linked"), "main")
    assert find_repository(tmp_path / "linked").common_dir == bare.path
    assert refused(bare.path) == ("not_a_repository", {"rule": "bare"})


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == ("not_a_repository", {"rule": "absent"})
    assert refused(tmp_path / "missing" / "folder") == ("not_a_repository", {"rule": "absent"})


def test_a_bare_repository_and_the_inside_of_a_git_directory_have_no_worktree(repo: Repo) -> None:
    assert refused(repo.path / ".git" / "objects") == ("not_a_repository", {"rule": "bare"})
    repo.git("config", "core.bare", "true")
    assert refused(repo.path) == ("not_a_repository", {"rule": "bare"})


def test_an_empty_git_folder_is_passed_over_for_the_repository_above(repo: Repo) -> None:
    (repo.path / "sub" / ".git").mkdir(parents=True)
    assert find_repository(repo.path / "sub").worktree == repo.path


@pytest.mark.parametrize("content", ["gitdir: /nowhere/at/all\n", "nonsense\n", "", "gitdir: " + "x" * 70_000])
def test_a_git_file_that_leads_nowhere_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert refused(tmp_path) == ("not_a_repository", {"rule": "broken_link"})


def test_a_pipe_in_the_place_of_a_git_directory_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert refused(tmp_path)[0] == "not_a_repository"


def test_a_submodule_is_a_repository_of_its_own(repo: Repo, make_repo: MakeRepo) -> None:
    library = make_repo("library")
    library.commit(files={"l.txt": "1"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    found = find_repository(repo.path / "lib")
    assert (found.worktree, found.git_dir) == (repo.path / "lib", repo.path / ".git" / "modules" / "lib")


def test_core_worktree_of_the_repository_and_git_dir_of_the_environment_have_no_say(
    repo: Repo, make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo("other")
    repo.git("config", "core.worktree", str(other.path))
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    assert find_repository(repo.path).worktree == repo.path


def test_a_path_through_a_link_is_made_canonical(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(repo.path)
    assert find_repository(tmp_path / "shortcut").worktree == repo.path


@pytest.mark.parametrize(
    "name", ["with space", "quo'te\"s", "new\nline", "tab\tand\\back", b"not utf-8 \xff\xfe", "#;="]
)
def test_any_name_of_a_folder_works(tmp_path: Path, name: str | bytes) -> None:
    repo = Repo(tmp_path / os.fsdecode(name))
    oid = repo.commit(files={"a.txt": "one"})
    repo.write("b.txt", "two")
    with repo.reader() as git:
        assert git.head().oid == oid
        assert [entry.path for entry in git.status().entries] == ["b.txt"]


def test_a_sha256_repository_is_recognised(make_repo: MakeRepo) -> None:
    assert find_repository(make_repo(object_format="sha256").path).object_format == "sha256"


@pytest.mark.parametrize(
    ("version", "settings", "feature"),
    [
        ("1", ("extensions.refStorage", "reftable"), "reftable"),
        ("1", ("extensions.refStorage", "elsewhere"), "refstorage"),
        ("1", ("extensions.compatObjectFormat", "sha256"), "compatobjectformat"),
        ("1", ("extensions.neverHeardOf", "true"), "unknown_extension"),
        ("1", ("extensions.objectFormat", "sha3"), "objectformat"),
        ("0", ("extensions.objectFormat", "sha256"), "repository_format"),
        ("2", ("core.eol", "lf"), "repository_format"),
        ("x", ("core.eol", "lf"), "repository_format"),
    ],
)
def test_a_format_that_cannot_be_read_is_named(
    repo: Repo, version: str, settings: tuple[str, str], feature: str
) -> None:
    section, name = settings[0].split(".")
    with (repo.path / ".git" / "config").open("a") as config:
        config.write(f"[core]\n repositoryFormatVersion = {version}\n[{section}]\n {name} = {settings[1]}\n")
    assert refused(repo.path) == ("git_unsupported", {"feature": feature})


def test_harmless_extensions_are_accepted(repo: Repo) -> None:
    config = str(repo.path / ".git" / "config")
    for key, value in (("refStorage", "files"), ("preciousObjects", "true"), ("worktreeConfig", "true")):
        repo.git("config", "--file", config, f"extensions.{key}", value)
    repo.git("config", "--file", config, "core.repositoryFormatVersion", "1")
    assert find_repository(repo.path).object_format == "sha1"


def test_a_broken_configuration_is_refused_as_git_refuses_it(repo: Repo) -> None:
    (repo.path / ".git" / "config").write_text("[core\n")
    repo.git("status", ok=(128,))
    code, members = refused(repo.path)
    assert (code, members["operation"], members["rule"]) == ("git_failed", "read_config", "bad_config")
