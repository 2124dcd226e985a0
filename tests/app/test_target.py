"""Which store a command works on: what is said now, then what was said before; and no credentials where it is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from passdown.app.target import Target, choose, parse
from passdown.kernel.errors import PassdownError
from passdown.storage.address import Address, locate

SERVER = "https://passdown.example/team"
DATABASE = "postgresql://db.example/work"
FOLDER = "/srv/passdown"
RECORDED = "/was/here"
HOME = {"HOME": "/home/grace"}


def chosen(environment: dict[str, str] | None = None, **given: str | None) -> Target:
    asked: dict[str, str | None] = {"url": None, "database": None, "data": None, "recorded": None} | given
    return choose(HOME | (environment or {}), **asked)


SAID = {"url": ("server", SERVER), "database": ("database", DATABASE), "data": ("folder", FOLDER)}
VARIABLES = {"url": "PASSDOWN_URL", "database": "PASSDOWN_DATABASE", "data": "PASSDOWN_DATA"}
ORDER = [("option", "url"), ("option", "database"), ("option", "data")]
ORDER += [("variable", "url"), ("variable", "database"), ("variable", "data"), ("recorded", "")]


@pytest.mark.parametrize("first", range(len(ORDER)), ids=[" ".join(step).strip() for step in ORDER])
def test_of_all_that_is_said_the_first_in_this_order_counts(first: int) -> None:
    """Catches: an old setting that wins over a new one, and a folder that wins over the server around it. Everything
    that comes later in the order is said too, with another value."""
    given: dict[str, str | None] = {}
    environment: dict[str, str] = {}
    for kind, name in ORDER[first:]:
        mine = (kind, name) == ORDER[first]
        value = RECORDED if kind == "recorded" else SAID[name][1]
        said = value if mine else value + "-later"
        if kind == "option":
            given[name] = said
        elif kind == "variable":
            environment[VARIABLES[name]] = said
        else:
            given["recorded"] = said
    kind, name = ORDER[first]
    expected = ("folder", RECORDED) if kind == "recorded" else SAID[name]
    found = chosen(environment, **given)
    assert (found.kind, found.value) == expected


def test_what_is_empty_is_not_said() -> None:
    """Catches: `PASSDOWN_URL=` in front of a command that means the recorded place."""
    empty = dict.fromkeys(VARIABLES.values(), "")
    assert chosen(empty, url="", database="", data="", recorded=FOLDER) == Target("folder", FOLDER)
    assert chosen(empty, recorded="") == Target("folder", "/home/grace/.local/share/passdown")


def test_without_anything_said_it_is_the_data_directory_of_the_user() -> None:
    """Catches: a place that depends on the current folder."""
    assert chosen() == Target("folder", "/home/grace/.local/share/passdown")
    assert chosen({"XDG_DATA_HOME": "/xdg"}) == Target("folder", "/xdg/passdown")


@pytest.mark.parametrize("given", ["data", "PASSDOWN_DATA"])
def test_a_folder_that_leads_nowhere_is_refused(given: str) -> None:
    """Catches: a folder named like somebody who does not exist, made below the current one."""
    with pytest.raises(PassdownError) as caught:
        chosen(data="~nobody-here/x") if given == "data" else chosen({given: "~nobody-here/x"})
    assert (caught.value.code, caught.value.members["rule"]) == ("invalid_request", "unknown_place")


# --- what is recorded ---------------------------------------------------------------------------------------------

PLAIN = [
    "http://127.0.0.1:8765",
    "https://passdown.example/team",
    "https://[2001:db8::1]:8443/a/b",
    "postgresql://grace@db.example:5433/work?sslmode=require",
    "postgresql:///work?host=/run/postgresql",
    "mysql://grace@db.example/work",
    "oceanbase://root@/test?unix_socket=/run/sql.sock",
    "postgresql://[::1]:5433/work",
    "postgresql://grace%40home@db.example/w%2Fx",
    "sqlite:////srv/passdown/copy.db",
    "sqlite:////srv/odd?#@:name.db",
]


@pytest.mark.parametrize("value", PLAIN)
def test_a_place_without_a_password_is_recorded_as_it_was_given(value: str) -> None:
    """Catches: a recorded place that names another one, or none: slashes lost, parts decoded or left out."""
    target = parse(value)
    assert target.recorded == value
    assert parse(target.recorded) == target


SECRET = "geh%2Fe%40im%3A"
WITH_PASSWORD = [
    (f"postgresql://grace:{SECRET}@db.example:5433/work?sslmode=require", PLAIN[3]),
    (f"mysql://grace:{SECRET}@db.example/work", PLAIN[5]),
    (f"oceanbase://root:{SECRET}@/test?unix_socket=/run/sql.sock", PLAIN[6]),
    (f"postgresql://:{SECRET}@db.example/work", "postgresql://@db.example/work"),
    (f"postgresql://grace:a@b@{SECRET}@db.example/work", "postgresql://grace@db.example/work"),
    (f"postgresql://grace:a:{SECRET}@db.example/work", "postgresql://grace@db.example/work"),
    (f"https://grace:{SECRET}@passdown.example/team", "https://grace@passdown.example/team"),
]


@pytest.mark.parametrize(("value", "recorded"), WITH_PASSWORD)
def test_a_password_is_never_recorded(value: str, recorded: str) -> None:
    """Catches: a secret in a file of the checkout, however it is quoted."""
    found = parse(value).recorded
    assert found == recorded
    assert SECRET not in found and "geh" not in found


@pytest.mark.parametrize("value", [value for value in PLAIN if not value.startswith("http")])
def test_what_is_recorded_of_a_database_names_the_same_database(value: str) -> None:
    """Catches: a record that the store itself cannot read."""
    given, again = locate(value), locate(parse(value).recorded)
    assert given == again
    assert isinstance(given, Address) == (not value.startswith("sqlite"))


def test_a_relative_place_is_the_same_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches: a checkout whose handoffs are elsewhere as soon as a command runs in a subfolder."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    folder, file = chosen(data="here"), chosen(database="sqlite:///here.db")
    by_variable = chosen({"PASSDOWN_DATABASE": "sqlite:///here.db"})
    monkeypatch.chdir(tmp_path / "below")
    assert folder == parse(folder.recorded) == Target("folder", f"{tmp_path}/here")
    assert file == by_variable == parse(file.recorded) == Target("database", f"sqlite:///{tmp_path}/here.db")
    assert locate(file.value) == tmp_path / "here.db"


def test_a_recorded_folder_is_taken_as_it_stands() -> None:
    """Catches: a folder with odd letters read as a URL."""
    for value in ("/a b/ä", "/a:b/c", "/http:/x", "/~grace/x", f"{os.sep}%41"):
        assert parse(value) == Target("folder", value)
        assert parse(value).recorded == value
