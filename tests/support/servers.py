"""Real database servers for the tests: each in a private folder, started at most once in a run, removed at its end.

PostgreSQL and MariaDB come from the packages of the system and listen on a free port of 127.0.0.1 only; OceanBase's
engine comes from the wheel ``pylibseekdb`` and listens on a socket file only. A server that refuses to be root runs as
an unprivileged user. A server keeps nothing that outlives it: durability against power cuts is switched off where that
is possible, death of the process is not.

Public: :data:`KINDS`, :class:`Server` with ``missing``, ``start``, ``stop``, ``kill``, ``new_database``.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

START_SECONDS = 90
PR_SET_PDEATHSIG = 1
PASSWORD = "geheim/2:@"
"""Of the user ``locked`` on every server; it has to be quoted in a URL."""

QUOTED = "geheim%2F2%3A%40"


class ServerFailed(Exception):
    """The server did not come up; the message ends with what it said."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def die_with_parent() -> None:
    """In a child before it begins: no server outlives a run that was killed. Linux only, as a precaution."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One server. ``start`` after ``stop`` or ``kill`` brings the same data back at the same address."""

    name: ClassVar[str]
    hint: ClassVar[str]

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="passdown-server-"))
        self.process: subprocess.Popen[bytes] | None = None
        self.count = 0
        self.prepared = False

    # --- what differs -----------------------------------------------------------------------------------------------

    @classmethod
    def missing(cls) -> str | None:
        """Why this server cannot be started here, or None."""
        raise AssertionError("every kind has its own")

    def prepare(self) -> None:
        """Make the data folder."""

    def command(self) -> list[str]:
        raise AssertionError("every kind has its own")

    def connect(self, database: str | None = None, *, user: str | None = None) -> Any:
        """A connection of the driver as the owner of the server, committing each statement by itself."""
        raise AssertionError("every kind has its own")

    def url(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        raise AssertionError("every kind has its own")

    def wipe_sql(self, tables: Sequence[tuple[str, bool]]) -> list[str]:
        """Statements that empty tables past their triggers; each comes with whether it is immutable."""
        raise AssertionError("every kind has its own")

    # --- what is common ---------------------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}

    def identity(self) -> dict[str, Any]:
        """As whom it runs."""
        return {}

    def start(self) -> None:
        """Start and wait until it answers."""
        if not self.prepared:
            self.prepare()
        self.launch()
        try:
            self.wait()
            if not self.prepared:
                self.furnish()
                self.prepared = True
        except BaseException:
            self.kill()
            raise

    def launch(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
                **self.identity(),
            )

    def wait(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except Exception as error:
                if self.process is None or self.process.poll() is not None or time.monotonic() > limit:
                    raise ServerFailed(f"{self.name}: {error}\n{self.said()}") from error
                time.sleep(0.02)

    def said(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def furnish(self) -> None:
        """Make the user ``locked``, who has a password and no rights."""

    def stop(self) -> None:
        """End in good order."""
        if self.process is not None:
            self.end()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def end(self) -> None:
        assert self.process is not None
        self.process.terminate()

    def kill(self) -> None:
        """End at once, as a crash would."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_database(self) -> str:
        """The name of a new, empty database."""
        self.count += 1
        name = f"t{self.count}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE {name}")

    def execute(self, *statements: str, database: str | None = None, user: str | None = None) -> list[tuple[Any, ...]]:
        """Execute statements; returns the rows of the last one."""
        connection = self.connect(database, user=user)
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
            cursor.close()
            return [tuple(row) for row in rows]
        finally:
            connection.close()


class Postgres(Server):
    name = "postgresql"
    hint = "apt-get install postgresql, and pip install 'passdown[server]'"

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()

    @staticmethod
    def binaries() -> Path | None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
        if found:
            return found[-1].parent
        place = shutil.which("initdb")
        return Path(place).parent if place else None

    @classmethod
    def missing(cls) -> str | None:
        if cls.binaries() is None:
            return "no initdb"
        if importlib.util.find_spec("psycopg") is None:
            return "no psycopg"
        if os.geteuid() == 0:
            try:
                pwd.getpwnam("postgres")
            except KeyError:
                return "no user postgres to run as"
        return None

    def prepare(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        command = [f"{self.binaries()}/initdb", "-D", f"{self.folder}/data", "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        made = subprocess.run(
            command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, **self.identity()
        )
        if made.returncode:
            raise ServerFailed(made.stderr[-3000:])
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + rules.read_text())

    def identity(self) -> dict[str, Any]:
        """The server refuses to be root."""
        return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": 150,
            "shared_buffers": "64MB",
        }
        command = [f"{self.binaries()}/postgres", "-D", f"{self.folder}/data"]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return command

    def end(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)  # the "fast" shutdown: open transactions are rolled back

    def connect(self, database: str | None = None, *, user: str | None = None) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user or "postgres", dbname=database or "postgres", autocommit=True
        )

    def url(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        secret = "" if password is None else f":{password}"
        return f"postgresql://{user or 'postgres'}{secret}@127.0.0.1:{self.port}/{database}"

    def furnish(self) -> None:
        self.execute(f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'", "CREATE ROLE guest LOGIN")

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def wipe_sql(self, tables: Sequence[tuple[str, bool]]) -> list[str]:
        return ["SET session_replication_role = replica", *(f"DELETE FROM {table}" for table, _ in tables)]


class _MySqlProtocol(Server):
    def socket_file(self) -> str:
        raise AssertionError("every kind has its own")

    def connect(self, database: str | None = None, *, user: str | None = None) -> Any:
        import pymysql

        connection = pymysql.connect(user=user or "root", database=database, autocommit=True, defer_connect=True)
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.connect(self.socket_file())
        except OSError:
            opened.close()
            raise
        connection.connect(opened)
        return connection

    def furnish(self) -> None:
        self.execute(f"CREATE USER locked IDENTIFIED BY '{PASSWORD}'", "CREATE USER guest IDENTIFIED BY ''")

    def wipe_sql(self, tables: Sequence[tuple[str, bool]]) -> list[str]:
        # TRUNCATE asks no trigger, and is slow: only where it has to be.
        return [f"TRUNCATE TABLE {table}" if immutable else f"DELETE FROM {table}" for table, immutable in tables]


class MariaDb(_MySqlProtocol):
    name = "mysql"
    hint = "apt-get install mariadb-server, and pip install 'passdown[server]'"

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()

    @staticmethod
    def binary() -> str | None:
        path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin"
        return shutil.which("mariadbd", path=path)

    @classmethod
    def missing(cls) -> str | None:
        if cls.binary() is None or shutil.which("mariadb-install-db") is None:
            return "no mariadbd"
        return None if importlib.util.find_spec("pymysql") else "no pymysql"

    def owner(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def prepare(self) -> None:
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", "--skip-test-db"]
        command += ["--auth-root-authentication-method=normal", *self.owner()]
        made = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True)
        if made.returncode:
            raise ServerFailed((made.stdout + made.stderr)[-3000:])

    def command(self) -> list[str]:
        return [
            str(self.binary()),
            "--no-defaults",
            f"--datadir={self.folder}/data",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            f"--socket={self.folder}/sock",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=64M",
            "--max-connections=200",
            "--skip-name-resolve",
            *self.owner(),
        ]

    def socket_file(self) -> str:
        return f"{self.folder}/sock"

    def url(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        secret = "" if password is None else f":{password}"
        return f"mysql://{user or 'passdown'}{secret}@127.0.0.1:{self.port}/{database}"

    def furnish(self) -> None:
        super().furnish()
        self.execute("CREATE USER passdown IDENTIFIED BY ''", "GRANT ALL ON *.* TO passdown")


class SeekDb(_MySqlProtocol):
    name = "oceanbase"
    hint = "pip install pylibseekdb 'passdown[server]' (Linux)"

    def __init__(self) -> None:
        super().__init__()
        self.data = self.folder / "data"
        self.hold: int | None = None

    @staticmethod
    def binary() -> Path | None:
        found = importlib.util.find_spec("pylibseekdb")
        if found is None or found.origin is None:
            return None
        place = Path(found.origin).with_name("seekdb")
        return place if os.access(place, os.X_OK) else None

    @classmethod
    def missing(cls) -> str | None:
        if cls.binary() is None:
            return "no pylibseekdb"
        return None if importlib.util.find_spec("pymysql") else "no pymysql"

    def prepare(self) -> None:
        (self.data / "run").mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "TELEMETRY_ENABLED": "false"}

    def launch(self) -> None:
        # The server lives as long as somebody holds this lock.
        self.hold = os.open(self.data / "run" / "seekdb.clients", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.hold, fcntl.LOCK_SH)
        super().launch()

    def command(self) -> list[str]:
        command = [str(self.binary()), f"--base-dir={self.data}", "--embedded", "--nodaemon"]
        return [*command, "--parameter", "memory_budget=1G", "--parameter", "log_disk_size=2G"]

    def end(self) -> None:
        self.let_go()

    def kill(self) -> None:
        super().kill()
        self.let_go()

    def let_go(self) -> None:
        if self.hold is not None:
            os.close(self.hold)
            self.hold = None

    def socket_file(self) -> str:
        return f"{self.data}/run/sql.sock"

    def url(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        secret = "" if password is None else f":{password}"
        return f"oceanbase://{user or 'root'}{secret}@/{database}?unix_socket={self.data}/run/sql.sock"


KINDS: tuple[type[Server], ...] = (Postgres, MariaDb, SeekDb)
