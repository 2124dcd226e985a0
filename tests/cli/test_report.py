"""``report`` and its ``verify``, ``selection``, ``projects``."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import rfc8785
from cli_support import World


@pytest.fixture(scope="module")
def shop(new_world: Callable[[], World]) -> World:
    """A project with one workstream in each state."""
    world = new_world()
    repo = world.bound()
    world.ok(repo.path, "handoff", "--next", "Go on")
    for key, words in (("stuck", ["--blocked", "No key"]), ("done", ["--complete"]), ("new", None)):
        world.ok(repo.path, "start", key.title(), "--key", key, "--kind", "bug" if key == "stuck" else "other")
        if words is not None:
            world.ok(repo.path, "handoff", *words)
    return world


@pytest.fixture
def place(shop: World) -> Path:
    return shop.root / "shop"


def export(world: World, cwd: Path, path: Path, *arguments: str) -> Path:
    answer = world.ok(cwd, "report", "--output", str(path), *arguments)
    assert answer.out == ""
    return path


def test_the_report_of_the_bound_project_goes_to_stdout(shop: World, place: Path) -> None:
    answer = shop.ok(place, "report")
    assert answer.out.startswith("---\nschema: powercontext.handoff-report.v1\n")
    assert answer.err == ""


def test_the_json_report_carries_digests_that_an_independent_canonicaliser_finds(shop: World, place: Path) -> None:
    out = shop.ok(place, "report", "--json").out
    report = json.loads(out)
    digest = report.pop("report_digest")
    assert digest == "sha256:" + hashlib.sha256(rfc8785.dumps(report)).hexdigest()
    assert rfc8785.dumps({**report, "report_digest": digest}) == out.encode().rstrip(b"\n")


def test_filters_select(shop: World, place: Path) -> None:
    def keys(*arguments: str) -> set[str]:
        found = shop.ok(place, "report", "--json", *arguments).json["workstreams"]
        return {item["workstream"]["key"] for item in found}

    assert keys() == {"main", "stuck", "done", "new"}
    assert keys("--disposition", "blocked") == {"stuck"}
    assert keys("--disposition", "blocked", "--disposition", "no_handoff") == {"stuck", "new"}
    assert keys("--kind", "bug") == {"stuck"}
    assert keys("--label", "nothing") == set()


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["--format", "pdf"], "unsupported_report_format", 2),
        (["--locale", "fr"], "unsupported_report_locale", 2),
        (["--disposition", "done"], "invalid_request", 2),
        (["--kind", "epic"], "invalid_request", 2),
        (["--project", "nobody"], "project_not_found", 4),
        (["--output", "no/such/folder/report.md"], "file_not_writable", 5),
    ],
)
def test_a_refused_report_says_which_rule(
    shop: World, place: Path, arguments: list[str], code: str, exit_code: int
) -> None:
    shop.refused(code, exit_code, place, "report", *arguments)


def test_an_output_that_cannot_be_replaced_is_left_as_it_was(shop: World, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    folder.mkdir()
    shop.refused("file_not_writable", 5, place, "report", "--output", str(folder))
    assert list(tmp_path.iterdir()) == [folder]


def test_the_output_path_cannot_write_to_the_terminal(shop: World, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "r\x1b[31m\n.md"
    answer = shop.ok(place, "report", "--output", str(path))
    assert path.is_file()
    assert "\x1b" not in answer.err
    assert "\\u{1b}[31m" in answer.err


def test_an_unbound_checkout_sees_the_scopes_in_no_project_and_is_told(shop: World, tmp_path: Path) -> None:
    repo = World(tmp_path).repo()
    answer = shop.ok(repo.path, "report", "--json")
    assert answer.json["project"]["project_id"] == "prj_ungrouped"
    assert answer.json["workstreams"] == []
    assert answer.err.startswith("This checkout is not bound: ")


# --- verify -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_an_export_verifies_from_the_file_alone(
    shop: World, place: Path, bare_world: World, tmp_path: Path, form: str
) -> None:
    path = export(shop, place, tmp_path / "week", "--format", form)
    answer = bare_world.ok(bare_world.root, "report", "verify", str(path), "--json", HOME=None, PASSDOWN_DATA=None)
    (verdict,) = answer.json
    assert verdict["ok"] is True
    assert verdict["verified"] == (["selection_digest", "report_digest"] if form == "json" else ["selection_digest"])
    assert not bare_world.data.exists()


def test_verify_reads_stdin(shop: World, place: Path, tmp_path: Path) -> None:
    data = export(shop, place, tmp_path / "week.json", "--format", "json").read_bytes()
    assert shop.ok(place, "report", "verify", "-", stdin=data).out.startswith("✔ -  ")


def test_one_bad_file_among_good_ones_decides_the_exit_code(shop: World, place: Path, tmp_path: Path) -> None:
    good = export(shop, place, tmp_path / "good.json", "--format", "json")
    bad = tmp_path / "bad.json"
    bad.write_bytes(good.read_bytes().replace(b"No key", b"No kex"))
    answer = shop.run(place, "report", "verify", str(good), str(bad), str(tmp_path / "absent"), "--json")
    assert answer.code == 4
    assert [(item["ok"], item.get("code")) for item in answer.json] == [
        (True, None),
        (False, "digest_mismatch"),
        (False, "file_not_readable"),
    ]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "malformed_json"),
        (b"{}", "unsupported_schema"),
        (b'{"a":1,"a":2}', "malformed_json"),
        (b"\xff\xfe", "malformed_json"),
        (b"# A page\n", "malformed_json"),
        (b"[" * 100_000, "malformed_json"),
    ],
)
def test_a_file_that_is_no_report_is_told_apart(bare_world: World, tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    answer = bare_world.run(bare_world.root, "report", "verify", str(path), "--json")
    assert (answer.code, answer.json[0]["code"]) == (2, code)


def test_a_folder_is_no_file(bare_world: World, tmp_path: Path) -> None:
    answer = bare_world.run(bare_world.root, "report", "verify", str(tmp_path), "--json")
    assert (answer.code, answer.json[0]["code"]) == (4, "file_not_readable")


# --- selection, projects ----------------------------------------------------------------------------------------------


def test_the_selection_has_the_selection_digest(shop: World, place: Path, tmp_path: Path) -> None:
    path = export(shop, place, tmp_path / "week.json", "--format", "json")
    page = export(shop, place, tmp_path / "week.md")
    digest = json.loads(path.read_bytes())["selection_digest"]
    for file in (path, page):
        selection = shop.ok(place, "report", "selection", str(file)).json
        assert "sha256:" + hashlib.sha256(rfc8785.dumps(selection)).hexdigest() == digest


def test_projects_lists_key_id_and_title(shop: World, place: Path) -> None:
    (project,) = shop.ok(place, "report", "projects", "--json").json
    assert shop.ok(place, "report", "projects").out.split() == ["shop", project["project_id"], "shop"]


def test_projects_without_any_says_how_to_begin(world: World) -> None:
    answer = world.ok(world.root, "report", "projects")
    assert (answer.out, answer.err) == ("", "No project yet. Begin with: passdown init\n")


def test_without_a_store_a_report_makes_none(bare_world: World) -> None:
    answer = bare_world.refused("store_not_readable", 5, bare_world.root, "report", "projects")
    assert "passdown init" in answer.err
    assert not bare_world.data.exists()


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder outside of the private ones of these tests, so that another user can reach it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
def test_a_store_that_may_only_be_read_still_reports_and_takes_nothing(shop: World, read_only: Path) -> None:
    copy = read_only / "data"
    shutil.copytree(shop.data, copy)
    for path in (*copy.iterdir(), copy):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    answer = shop.run(read_only, "report", "--project", "shop", "--json", "--data", str(copy), user=65534)
    assert answer.code == 0, answer
    assert answer.json["coverage"]["selected_workstreams"] == 4
    refused = shop.run(read_only, "token", "create", "n", "--principal", "p", "--data", str(copy), user=65534)
    assert (refused.code, refused.err.split(":")[0]) == (5, "store_not_writable")
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
