"""URLs of stores: what they name, what is refused, and that a password is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_support import put, refused, value_of

from passdown.storage import open_store
from passdown.storage.address import MAX_URL, Address, locate

SECRET = "s3cr3t-word"


def test_a_sqlite_url_names_a_file_and_opens_the_same_store_as_its_path(database: Path) -> None:
    """Catches: a URL decoded where a path is meant, or two stores of one file."""
    url = f"sqlite:///{database}"
    assert locate(url) == database
    assert locate("sqlite:///relative/a%20b?c#d.db") == Path("relative/a%20b?c#d.db")
    store = open_store(url, create=False)
    assert store.url == url
    store.write(put(b"by url", 4))
    store.close()
    again = open_store(database, create=False)
    assert value_of(again, b"by url") == 4
    again.close()


@pytest.mark.parametrize(
    ("url", "kind", "host", "port", "user", "password", "database", "options"),
    [
        ("postgresql://h/d", "postgresql", "h", None, None, None, "d", {}),
        ("postgres://u:p@h:5/d?sslmode=require", "postgresql", "h", 5, "u", "p", "d", {"sslmode": "require"}),
        ("postgresql:///d?host=%2Frun%2Fpg", "postgresql", None, None, None, None, "d", {"host": "/run/pg"}),
        ("mysql://u%40t%23c:p%2F%3A%40@h/d%20e", "mysql", "h", None, "u@t#c", "p/:@", "d e", {}),
        ("mariadb://u@[::1]:3306/d", "mysql", "::1", 3306, "u", None, "d", {}),
        ("oceanbase://r@/d?unix_socket=/r/s", "oceanbase", None, None, "r", None, "d", {"unix_socket": "/r/s"}),
    ],
)  # fmt: skip
def test_a_server_url_names_its_parts(
    url: str, kind: str, host: str, port: int, user: str, password: str, database: str, options: dict[str, str]
) -> None:
    """Catches: a part that is not decoded, or decoded twice, and a scheme sent to the wrong engine."""
    assert locate(url) == Address(kind, host, port, user, password, database, options)


def test_the_url_without_its_password_names_the_same_place() -> None:
    """Catches: a shown URL that does not lead back, or that shows the secret."""
    for url in (
        f"mysql://u%40t:{SECRET}@[::1]:7/d%2Fe",
        f"postgresql://u:{SECRET}@/d?host=/run/pg&sslmode=require",
        f"oceanbase://:{SECRET}@h/d",
    ):
        address = locate(url)
        assert isinstance(address, Address)
        assert address.password == SECRET
        assert SECRET not in address.url
        assert SECRET not in repr(address)
        shown = locate(address.url)
        assert isinstance(shown, Address)
        kept = [(a.engine, a.host, a.port, a.user, a.database, a.options) for a in (shown, address)]
        assert kept[0] == kept[1]
        assert shown.password is None


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "unknown_scheme"),
        ("/some/path", "unknown_scheme"),
        ("oracle://h/d", "unknown_scheme"),
        ("POSTGRESQL://h/d", "unknown_scheme"),
        ("postgresql+psycopg://h/d", "unknown_scheme"),
        ("sqlite://x", "unknown_scheme"),
        ("sqlite:///", "malformed"),
        ("sqlite:///a\0b", "malformed"),
        ("postgresql://h", "no_database"),
        ("postgresql://h/", "no_database"),
        ("mysql://h:port/d", "malformed"),
        ("mysql://h:70000/d", "malformed"),
        ("mysql://[::1/d", "malformed"),
        ("mysql://h/d\n", "malformed"),
        ("mysql://h/d e", "malformed"),
        ("mysql://u%00@h/d", "malformed"),
        ("mysql://u%ff@h/d", "malformed"),
        ("mysql://h/d#part", "malformed"),
        ("postgresql://h/d?sslmode", "malformed"),
        (f"postgresql://h/d?password={SECRET}", "unknown_option"),
        (f"postgresql://h/d?options=-csearch_path%3D{SECRET}", "unknown_option"),
        ("mysql://h/d?unix_socket=/a&unix_socket=/b", "unknown_option"),
        ("mysql://h/d?sslmode=require", "unknown_option"),
        ("mysql://h/" + "d" * MAX_URL, "too_long"),
    ],
)
def test_a_url_that_names_nothing_is_refused_without_being_repeated(url: str, rule: str) -> None:
    """Catches: a guess instead of a refusal, a bare ValueError, text of the URL in the refusal."""
    error = refused(lambda: open_store(url, create=True))
    assert (error.code, error.members) == ("invalid_request", {"field": "database", "rule": rule})
    assert SECRET not in repr(error.problem())


def test_a_url_of_the_longest_length_is_taken() -> None:
    """Catches: a limit that is one too low."""
    url = "mysql://h/" + "d" * (MAX_URL - len("mysql://h/"))
    assert len(url) == MAX_URL
    assert locate(url)
