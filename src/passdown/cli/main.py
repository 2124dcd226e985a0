"""The command line: a thin shell over the operations. Every refusal is ``code: sentence`` and the next step on stderr.

Commands import what they need inside themselves; ``--help`` loads none of it.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from passdown.cli.commands import ALL, DAILY, Commands
from passdown.kernel.errors import PassdownError

# Typer keeps its own copy of click; the root of its usage errors has no public name of its own.
UsageRefused: type[Any] = typer.BadParameter.__mro__[2]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class _Sections(TyperGroup):
    """Help with the daily commands first, in the order of a day, and the others under "More"."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(ALL)  # type: ignore[assignment]  # read only; nothing adds to it

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        more = [name for name in self.list_commands(ctx) if name not in DAILY]
        width = formatter.width - 20
        for title, names in (("Commands", DAILY), ("More", more)):
            listed = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str(width)) for name, command in listed if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


app = typer.Typer(
    cls=_Sections,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    context: typer.Context,
    data: Annotated[str | None, typer.Option("--data", help="Data directory for every command.")] = None,
    database: Annotated[
        str | None, typer.Option(help="Database URL for every command (else PASSDOWN_DATABASE).")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Passdown server for every command (else PASSDOWN_URL; token: PASSDOWN_TOKEN).")
    ] = None,
    as_: Annotated[str | None, typer.Option("--as", help="Name to record as the author.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a screen.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Hand work on, cited, and continue it knowing what is still true.

    Without a command: what is bound here, what needs attention, and the one next command.
    """
    if version:
        from passdown import __version__

        sys.stdout.write(f"passdown {__version__}\n")
        raise typer.Exit
    _say_where(url=url, database=database, data=data)
    if as_ is not None:
        os.environ["PASSDOWN_AGENT"] = as_
    if json:
        group: Any = context.command
        named = context.invoked_subcommand
        context.default_map = {named: _said_before(group.commands[named])} if named else None
    if context.invoked_subcommand is None:
        from passdown.cli.home import home

        home(data, as_, json=json)


def _say_where(**given: str | None) -> None:
    """What an option says replaces everything that the environment says about the place."""
    if any(given.values()):
        for name, value in given.items():
            os.environ[f"PASSDOWN_{name.upper()}"] = value or ""


def _said_before(group: Any) -> dict[str, Any]:
    """Defaults by which every command below takes a `--json` that stood before its name."""
    defaults: dict[str, Any] = {"json": True}
    for name, command in getattr(group, "commands", {}).items():
        defaults[name] = _said_before(command)
    return defaults


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # No plug-in of the model library is used; looking for some reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _prepare_streams()
    try:
        outcome: Any = app(args=arguments, prog_name="passdown", standalone_mode=False)
        # Here and not when Python ends, so that a closed pipe or a full disk is met by the clauses below.
        sys.stdout.flush()
    except PassdownError as error:
        _complain(error)
        return error.spec.exit_code
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("Interrupted; nothing was half written.\n")
        return 130
    except UsageRefused as error:
        error.show()
        return int(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output went away: there is nobody to tell.
        _drop_output()
        return 0
    except SystemExit as ended:
        # Typer meets a closed pipe first while a command runs, and ends with a code of its own.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        _drop_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            # Stores and files tell this themselves; what is left is our own output.
            _drop_output()
            refused = PassdownError("file_not_writable", field="stdout")
        elif os.environ.get("PASSDOWN_DEBUG"):
            raise
        else:
            refused = PassdownError("internal_error", rule=type(error).__name__)
        _complain(refused)
        return refused.spec.exit_code
    return outcome if isinstance(outcome, int) else 0


def _prepare_streams() -> None:
    """Standard streams that exist and take every character.

    One that was closed by whoever started us would leave its number to the next file that is opened, the database for
    one; a terminal that does not speak UTF-8 shows what it cannot as an escape instead of ending the command.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  open until we end
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Nobody takes our output any more; Python would complain about it once again while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: PassdownError) -> None:
    lines = [f"{error.code}: {error.spec.sentence}"]
    for item in error.members.get("errors", [])[:5]:
        lines.append(f"  {item['field'] or 'input'}: {item['rule']}")
    facts = {
        name: value for name, value in error.members.items() if isinstance(value, (str, int)) and name != "guidance"
    }
    facts.pop("error_count", None)
    if facts:
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in facts.items()))
    if error.members.get("choices"):
        lines.append("  choices: " + ", ".join(error.members["choices"]))
    lines.append(f"next: {error.members.get('guidance') or error.spec.next_step}")
    from passdown.kernel.escape import terminal

    sys.stderr.write("".join(f"{terminal(line)}\n" for line in lines))
