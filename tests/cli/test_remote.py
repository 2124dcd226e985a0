"""Every command against a server as against a folder: the same bytes, the same refusals, and no secret on the way."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_support import Answer, World, numbers, serving
from git_support import Repo

from passdown.git.locate import find_repository
from passdown.git.state import load_state, save_state

TOKEN = re.compile(r"pdt_[A-Za-z0-9_-]{43}")
AGO = re.compile(r"just now|\d+ \w+ ago")
ID = re.compile(r"\b(prj|scp|hnd|ws)_[0-9A-Za-z_-]+")
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
DIGEST = re.compile(r"[0-9a-f]{64}")
OF_STORE = re.compile(r'(?<="report_digest":")sha256:[0-9a-f]{64}|(?<="selection_digest":")sha256:[0-9a-f]{64}')
VARIES = ("generated_at", "report_digest")
"""Members that the time of asking changes; the digest of a report covers it."""


class Remote:
    """A served world, and the environment by which its commands find the server and nothing else."""

    def __init__(self, world: World, url: str, token: str) -> None:
        self.world = world
        self.url = url
        self.token = token
        self.here: dict[str, str | None] = {
            "PASSDOWN_DATA": None,
            "PASSDOWN_DATABASE": None,
            "PASSDOWN_URL": url,
            "PASSDOWN_TOKEN": token,
        }

    def run(self, cwd: Path, *arguments: str, **changes: str | None) -> Answer:
        return self.world.run(cwd, *arguments, **(self.here | changes))

    def ok(self, cwd: Path, *arguments: str, **changes: str | None) -> Answer:
        return self.world.ok(cwd, *arguments, **(self.here | changes))

    def refused(self, code: str, exit_code: int, cwd: Path, *arguments: str, **changes: str | None) -> Answer:
        return self.world.refused(code, exit_code, cwd, *arguments, **(self.here | changes))


@contextmanager
def served(world: World, role: str = "owner") -> Iterator[Remote]:
    """The server over the world's own store, with a token for whoever the command line is when it is embedded."""
    made = world.ok(
        *(world.root, "token", "create", "remote", "--principal", "grace", "--role", role, "--json"),
        *("--host", os.uname().nodename),
    )
    with serving(world, world.root) as (url, _):
        yield Remote(world, url, made.json["token"])


def below(world: World, name: str) -> World:
    """Another world, in a folder of ``world``."""
    (world.root / name).mkdir()
    return World(world.root / name)


def stable(answer: Answer) -> Any:
    """What a command left behind, without what the time of asking changes."""
    out = answer.out
    if out.startswith("{"):
        value = answer.json
        for name in VARIES:
            value.pop(name, None)
        return answer.code, value, answer.err
    return answer.code, [AGO.sub("AGO", line) for line in out.splitlines()], answer.err


# --- the same store -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def remote(new_world: Callable[[], World]) -> Iterator[Remote]:
    """A project with workstreams in several states, served; its tests only read."""
    world = new_world()
    repo = world.bound(commits=3)
    world.ok(repo.path, "start", "Retry queue")
    world.ok(repo.path, "handoff", "--blocked", "No quota", "--state", "原因 \u202e<b>|x", "--next", "Ask")
    world.ok(repo.path, "start", "Never handed off")
    world.ok(repo.path, "switch", "main")
    (repo.path / "draft.txt").write_text("not committed\n")
    world.ok(repo.path, "handoff", "--next", "Go on")
    world.ok(repo.path, "handoff", "--next", "Go on further", "--complete")
    with served(world) as opened:
        yield opened


SCREENS = [
    [],
    ["--json"],
    ["switch"],
    ["switch", "--json"],
    ["continue"],
    ["continue", "--json"],
    ["continue", "--verbose"],
    ["report", "--json"],
    ["report", "--project", "shop", "--json"],
    ["report", "--disposition", "blocked", "--json"],
    ["report", "--no-checks", "--json"],
    ["report", "projects"],
    ["report", "projects", "--json"],
    ["handoff", "show"],
    ["handoff", "show", "prev", "--json"],
    ["handoff", "history"],
    ["handoff", "history", "--json"],
    ["handoff", "diff"],
    ["handoff", "diff", "--all", "--json"],
    ["handoff", "export", "--bodies"],
]
REFUSED = [
    ["report", "--project", "nobody"],
    ["report", "--locale", "fr"],
    ["report", "--format", "pdf"],
    ["report", "--kind", "nothing"],
    ["switch", "nobody"],
    ["start", "x", "--key", "main"],
    ["start", "x" * 257],
    ["start", "x", "--project", "nobody"],
    ["init", "--key", "shop", "--yes"],
    ["init", "--project", "nobody"],
    ["init", "--key", "ungrouped", "--yes"],
    ["handoff", "--cite", "commit:0000"],
    ["handoff", "--cite", "no-such-file"],
    ["handoff", "--state", "x" * 4097],
    ["continue", "--revision", "99"],
    ["handoff", "show", "99"],
    ["handoff", "diff", "1", "99"],
    ["handoff", "ack", "99", "--accept"],
    ["handoff", "export", "99"],
]


@pytest.mark.parametrize("arguments", SCREENS, ids=" ".join)
def test_a_command_that_reads_prints_the_same(remote: Remote, arguments: list[str]) -> None:
    """Catches: an answer that loses or gains something on the wire."""
    shop = remote.world.root / "shop"
    embedded, over_http = remote.world.ok(shop, *arguments), remote.ok(shop, *arguments)
    assert stable(over_http) == stable(embedded)
    assert embedded.out


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_the_page_of_a_project_is_the_same_but_for_the_time(remote: Remote, locale: str) -> None:
    """Catches: bytes of a report that are decoded or cut on their way."""
    shop = remote.world.root / "shop"
    arguments = ["report", "--locale", locale]
    embedded, over_http = remote.world.ok(shop, *arguments), remote.ok(shop, *arguments)
    ours, theirs = (text.out.splitlines() for text in (embedded, over_http))
    different = [(mine, other) for mine, other in zip(ours, theirs, strict=True) if mine != other]
    assert len(ours) > 20 and len(different) <= 4
    for mine, other in different:
        blank = [DIGEST.sub("D", STAMP.sub("T", line)) for line in (mine, other)]
        assert blank[0] == blank[1], different


@pytest.mark.parametrize("arguments", REFUSED, ids=lambda words: " ".join(words)[:40])
def test_a_refusal_is_the_same(remote: Remote, arguments: list[str]) -> None:
    """Catches: a code, a member or an exit code that the wire changes, and a write before the refusal."""
    shop = remote.world.root / "shop"
    before = numbers(remote.world.data)
    embedded, over_http = remote.world.run(shop, *arguments), remote.run(shop, *arguments)
    assert (over_http.code, over_http.out, over_http.err) == (embedded.code, embedded.out, embedded.err)
    assert embedded.code in (2, 3, 4) and embedded.err
    assert numbers(remote.world.data) == before


def test_an_export_of_a_server_verifies_and_has_the_selection_of_the_embedded_one(remote: Remote) -> None:
    """Catches: two exact selections of one store."""
    shop = remote.world.root / "shop"
    remote.world.ok(shop, "report", "--json", "--output", str(remote.world.root / "here.json"))
    remote.ok(shop, "report", "--json", "--output", str(remote.world.root / "there.json"))
    told = remote.ok(remote.world.root, "report", "verify", "here.json", "there.json", "--json").json
    assert [item["ok"] for item in told] == [True, True]
    assert told[0]["selection_digest"] == told[1]["selection_digest"]
    selections = [remote.ok(remote.world.root, "report", "selection", name).out for name in ("here.json", "there.json")]
    assert selections[0] == selections[1]


# --- twin stores --------------------------------------------------------------------------------------------------


def twin(answer: Answer, store: str) -> tuple[int, str, str]:
    """What a writing command left behind, with everything that is random or new in each store named alike.

    Digests of what is handed off stay: they cover the same commits, files and words in both stores."""
    seen: dict[str, str] = {}

    def named(text: str) -> str:
        text = ID.sub(lambda found: seen.setdefault(found[0], f"{found[1]}_{len(seen)}"), text.replace(store, "STORE"))
        text = OF_STORE.sub("D", STAMP.sub("T", AGO.sub("AGO", text)))
        return text.replace('"identity":"authenticated"', '"identity":"asserted"').replace("authenticated", "asserted")

    return answer.code, named(answer.out), named(answer.err)


STORY: list[list[str]] = [
    ["init", "--yes", "--title", "The shop"],
    ["init"],
    ["handoff", "--next", "Go on", "--state", "It stands.", "--cite", "file-1.txt"],
    ["handoff", "--next", "Go on", "--state", "It stands.", "--cite", "file-1.txt"],
    ["continue", "--json"],
    ["start", "Retry queue", "--kind", "bug", "--json"],
    ["start", "Retry queue"],
    [],
    ["handoff", "--blocked", "No quota", "--json"],
    ["start", "Said only"],
    ["handoff", "--complete", "--only-words", "--state", "Said."],
    ["switch", "main"],
    ["switch", "--json"],
    ["continue", "--verbose"],
    ["init", "--project", "shop", "--workstream", "retry-queue"],
    ["--json"],
    ["report", "projects", "--json"],
    ["report", "--json"],
]


def test_a_whole_story_is_told_in_the_same_words(world: World) -> None:
    """Catches: a command that writes something else through a server, or says it in another way."""
    repo = world.repo(commits=3)
    (repo.path / "new.txt").write_text("not committed\n")
    embedded = [twin(world.run(repo.path, *arguments), str(world.data)) for arguments in STORY]
    # The worktree keeps its own name, which is part of what is handed off; only its choice is taken back.
    bound = load_state(find_repository(repo.path)).state
    assert bound is not None
    other = below(world, "served")
    with served(other) as remote:
        save_state(find_repository(repo.path), replace(bound, scope_id=None, store=remote.url))
        over_http = [twin(remote.run(repo.path, *arguments), remote.url) for arguments in STORY]
        for arguments, mine, theirs in zip(STORY, embedded, over_http, strict=True):
            assert (arguments, theirs) == (arguments, mine)
        assert {code for code, _, _ in embedded} == {0}
        assert [out[:23] for _, out, _ in embedded if out.startswith("Committed")] == [
            "Committed as revision 1",
            "Committed as revision 1",
        ]
    assert numbers(other.data) == numbers(world.data)


# --- which place --------------------------------------------------------------------------------------------------


def keys(answer: Answer) -> list[str]:
    return [item["project_key"] for item in answer.json]


@pytest.fixture(scope="module")
def places(new_world: Callable[[], World]) -> Iterator[dict[str, str]]:
    """A server, a database and two folders with a project each, named like the place; and a checkout on the last."""
    world = new_world()
    repo = world.repo()
    found = {"root": str(world.root)}
    for name in ("folder", "database", "recorded"):
        other = world.root / name
        where = ["--database", f"sqlite:///{other}.db"] if name == "database" else ["--data", str(other)]
        world.ok(repo.path, *where, "init", "--yes", "--key", name, PASSDOWN_DATA=None)
        found[name] = where[1]
    behind = below(world, "behind")
    behind.ok(Repo(behind.root / "there").path, "init", "--yes", "--key", "server")
    with served(behind) as remote:
        yield found | {"server": remote.url, "token": remote.token}


BARE: dict[str, str | None] = {"PASSDOWN_DATA": None, "PASSDOWN_URL": None, "PASSDOWN_DATABASE": None}


@pytest.mark.parametrize(
    ("options", "variables", "expected"),
    [
        ("", "", "recorded"),
        ("", "folder", "folder"),
        ("", "folder database", "database"),
        ("", "folder database server", "server"),
        ("folder", "folder database server", "folder"),
        ("database", "folder server", "database"),
        ("server", "folder database", "server"),
        ("folder database", "server", "database"),
        ("folder database server", "", "server"),
    ],
)
def test_the_place_that_is_named_last_and_widest_counts(
    places: dict[str, str], options: str, variables: str, expected: str
) -> None:
    """Catches: a command that quietly works on another store than the one that was named."""
    root = Path(places["root"])
    world = World(root)
    option = {"folder": "--data", "database": "--database", "server": "--url"}
    variable = {"folder": "PASSDOWN_DATA", "database": "PASSDOWN_DATABASE", "server": "PASSDOWN_URL"}
    environment = BARE | {variable[name]: places[name] for name in variables.split()}
    environment["PASSDOWN_TOKEN"] = places["token"]
    arguments = [part for name in options.split() for part in (option[name], places[name])]
    answer = world.ok(root / "shop", *arguments, "report", "projects", "--json", **environment)
    assert keys(answer) == [expected]


def test_the_folder_of_one_command_wins_over_a_server_in_the_environment(places: dict[str, str]) -> None:
    """Catches: an option that is taken and not followed."""
    world = World(Path(places["root"]))
    there = ["report", "projects", "--json", "--data", places["folder"]]
    answer = world.ok(world.root / "shop", *there, **(BARE | {"PASSDOWN_URL": places["server"]}))
    assert keys(answer) == ["folder"]


def test_a_checkout_goes_on_where_it_was_bound(world: World) -> None:
    """Catches: a server that has to be named again with every command, and one that is used without its token."""
    repo = world.repo()
    with served(world) as remote:
        remote.ok(repo.path, "init", "--yes")
        later = remote.here | {"PASSDOWN_URL": None}
        world.ok(repo.path, "handoff", "--next", "Go on", **later)
        assert "Go on" in world.ok(repo.path, "continue", **later).out
        world.refused("unauthenticated", 2, repo.path, "continue", **(later | {"PASSDOWN_TOKEN": None}))


def test_a_relative_database_is_found_again_from_a_subfolder(world: World) -> None:
    """Catches: a second, empty store where the command happens to run."""
    repo = world.repo()
    (repo.path / "below").mkdir()
    world.ok(repo.path, "--database", "sqlite:///../side.db", "init", "--yes", "--key", "side", **BARE)
    assert keys(world.ok(repo.path / "below", "report", "projects", "--json", **BARE)) == ["side"]
    assert not (repo.path / "side.db").exists() and (world.root / "side.db").exists()


# --- secrets ------------------------------------------------------------------------------------------------------


def test_a_token_is_neither_recorded_nor_printed(world: World) -> None:
    """Catches: a secret in a file of the checkout, in a refusal, or in what the person sees."""
    repo = world.repo()
    with served(world) as remote:
        answers = [
            remote.ok(repo.path, "init", "--yes"),
            remote.ok(repo.path, "handoff", "--next", "Go on"),
            remote.ok(repo.path, "continue", "--verbose"),
            remote.run(repo.path, "switch", "nobody"),
            remote.run(repo.path, "continue", PASSDOWN_DEBUG="1"),
        ]
        state = (repo.path / ".git" / "passdown" / "worktree.json").read_text()
        assert remote.url in state
        for text in (state, *(answer.out + answer.err for answer in answers)):
            assert remote.token not in text and TOKEN.search(text) is None
        assert all(remote.token.encode() not in data for data in world.everything().values())


@pytest.mark.engines("postgresql", "mysql")
def test_the_password_of_a_database_is_neither_recorded_nor_printed(
    engine: str, server_of: Callable[[str], Any], world: World
) -> None:
    """Catches: a URL that is kept as it was given. The user has a password and no rights, then all of them."""
    from support.servers import PASSWORD, QUOTED

    server = server_of(engine)
    database = server.new_database()
    grant = {
        "postgresql": [f"ALTER DATABASE {database} OWNER TO locked"],
        "mysql": [f"GRANT ALL ON {database}.* TO locked"],
    }
    url = server.url(database, user="locked", password=QUOTED)
    repo = world.repo()
    here: dict[str, str | None] = BARE | {"PASSDOWN_DATABASE": url}
    answers = [world.run(repo.path, "init", "--yes", **here)]
    assert answers[0].code == 5
    server.execute(*grant[engine])
    answers += [
        world.ok(repo.path, "init", "--yes", **here),
        world.ok(repo.path, "handoff", "--next", "Go on", **here),
        world.ok(repo.path, "db", "check", "--json", **here),
        world.run(repo.path, "continue", **BARE),  # the recorded URL has no password
    ]
    assert (answers[-1].code, answers[-1].err.split(":")[0]) == (5, "store_not_readable")
    assert answers[-2].json["store"] == server.url(database, user="locked")
    assert "Go on" in world.ok(repo.path, "continue", **here).out
    state = (repo.path / ".git" / "passdown" / "worktree.json").read_text()
    assert server.url(database, user="locked") in state
    for text in (state, *(answer.out + answer.err for answer in answers)):
        assert QUOTED not in text and PASSWORD not in text and "geheim" not in text
    server.drop_database(database)


# --- a server that does not answer --------------------------------------------------------------------------------

COMMANDS = [
    [],
    ["switch"],
    ["start", "x"],
    ["handoff", "--yes"],
    ["continue"],
    ["report"],
    ["report", "projects"],
    ["init", "--yes", "--key", "other"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_server_that_is_down_is_told_and_nothing_is_written_elsewhere(world: World, arguments: list[str]) -> None:
    """Catches: a local store that quietly takes what the server should have."""
    repo = world.bound()
    before = world.everything()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers, and nobody else takes it
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        here: dict[str, str | None] = {"PASSDOWN_URL": url, "PASSDOWN_TOKEN": "pdt_" + "x" * 43}
        answer = world.refused("server_not_reachable", 5, repo.path, *arguments, **here)
    assert "rule refused" in answer.err
    assert world.everything() == before


@pytest.mark.parametrize(
    ("token", "rule"),
    [("pdt_" + "x" * 43, "unknown"), ("", "missing"), ("two words", "malformed"), ("x\r\nHost: other", "malformed")],
)
def test_a_wrong_token_is_told_and_never_shown(remote: Remote, token: str, rule: str) -> None:
    """Catches: a refusal that repeats what was sent, or a header made of it."""
    shop = remote.world.root / "shop"
    for arguments in (["continue"], ["report", "projects"], []):
        answer = remote.refused("unauthenticated", 2, shop, *arguments, PASSDOWN_TOKEN=token)
        assert f"rule {rule}" in answer.err
        assert not token or token not in answer.err


def test_a_token_that_may_only_read_writes_nothing(new_world: Callable[[], World]) -> None:
    """Catches: a command line that does more than its token allows."""
    world = new_world()
    repo = world.bound()
    with served(world, "reader") as remote:
        assert keys(remote.ok(repo.path, "report", "projects", "--json")) == ["shop"]
        before = numbers(world.data)
        for arguments in (["handoff", "--yes"], ["start", "x"], ["init", "--yes", "--key", "other"]):
            answer = remote.run(repo.path, *arguments)
            assert (answer.code, answer.out) == (2, "")
            assert "forbidden: " in answer.err and "rule role" in answer.err
        assert numbers(world.data) == before


@pytest.mark.parametrize(
    "url", ["http://", "http://h:port", "http://u:p@127.0.0.1:1", "https://h/?token=x", "http://h/a b"]
)
def test_an_address_that_is_none_is_refused_without_repeating_it(world: World, url: str) -> None:
    """Catches: an address with credentials that are sent or recorded."""
    repo = world.bound()
    before = world.everything()
    answer = world.refused("invalid_request", 2, repo.path, "--url", url, "report", "projects", PASSDOWN_TOKEN="x" * 47)
    assert url not in answer.err
    assert world.everything() == before


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("sqlserver://h/x", "unknown_scheme"),
        ("postgresql://h", "no_database"),
        ("mysql://h/x?charset=latin1", "unknown_option"),
        ("postgresql://u:geheim@h:port/x", "malformed"),
        ("sqlite:///", "malformed"),
    ],
)
def test_a_database_that_cannot_be_named_is_refused_without_repeating_it(world: World, url: str, rule: str) -> None:
    """Catches: a URL with a password in a refusal."""
    repo = world.bound()
    answer = world.refused("invalid_request", 2, repo.path, "--database", url, "report", "projects", **BARE)
    assert f"rule {rule}" in answer.err
    assert url not in answer.err and "geheim" not in answer.err


@pytest.mark.parametrize("url", ["127.0.0.1:8765", "localhost", "ftp://localhost", "http://user:s3cret@localhost"])
def test_an_address_that_is_none_is_told_how_one_looks(world: World, url: str) -> None:
    repo = world.repo()
    for arguments, environment in (([], {"PASSDOWN_URL": url}), (["--url", url], {})):
        answer = world.refused("invalid_request", 2, repo.path, *arguments, "report", "projects", **environment)
        assert "a whole address with its scheme" in answer.err
        assert "s3cret" not in answer.err
