"""``serve`` and ``token``: the HTTP server over the same store, and who may use it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Annotated

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from passdown.app.application import Application
    from passdown.app.report_process import ReportProcess
    from passdown.cli.context import Place
    from passdown.kernel.operations import Caller, Handler

token_app = typer.Typer(help="Tokens for the server.", rich_markup_mode=None, no_args_is_help=True)

_DAY_US = 86_400_000_000


def serve(
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8765,
    behind_tls_proxy: Annotated[
        bool, typer.Option("--behind-tls-proxy", help="State that a proxy in front ends TLS; allows other addresses.")
    ] = False,
    public_host: Annotated[
        list[str] | None, typer.Option(help="Host name under which the proxy is reached; repeatable.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Write one JSON line per request to stderr.")] = False,
    data: Data = None,
    as_: As = None,
) -> None:
    """Serve the operations over HTTP until interrupted."""
    import sys

    from passdown.api.app import create_app
    from passdown.api.exchange import log_requests_to
    from passdown.api.server import serve as run
    from passdown.app.features import operations_on
    from passdown.app.operations import OPERATIONS
    from passdown.identity.service import TokenService

    gc.enable()
    here = place(data, as_)
    with here.application(create=True) as (application, _):
        tokens = TokenService(application.store, application.clock, application.ids)
        if not tokens.any_owner():
            token, _record = tokens.create("owner", here.who.principal_id, "owner", host=here.who.host)
            screen.say(f"No owner token existed; this one is shown once: {token}")
        application_names = [host, *(public_host or [])]
        handlers = application.handlers()
        reports = None if "report" in application.off else _reports(here, application, handlers)
        app = create_app(
            handlers if reports is None else {**handlers, "get_handoff_report": reports},
            operations_on(OPERATIONS, application.off),
            tokens,
            allowed_hosts=application_names,
            document_model=None if reports is None else _report_model(),
            replays=application.replays(),
            places=application.places(),
            writes=application.store.writes,
        )
        if log:
            log_requests_to(sys.stderr)
        try:
            run(app, host, port, behind_tls_proxy=behind_tls_proxy)
        finally:
            if reports is not None:
                reports.close()


def _reports(here: Place, application: Application, handlers: Mapping[str, Handler]) -> ReportProcess:
    from passdown.app.report_process import ReportProcess

    return ReportProcess(here.store, application.clock, handlers["get_handoff_report"])


def _report_model() -> type[BaseModel]:
    from passdown.report.report_models import HandoffReport

    return HandoffReport


@token_app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    principal: Annotated[str, typer.Option(help="Who acts with it.")],
    role: Annotated[str, typer.Option(help="owner, agent or reader.")] = "agent",
    host: Annotated[
        str | None, typer.Option(help="What this token captures from a repository counts as read by this host.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="Days until it expires (else never).", min=1, max=3650)] = None,
    project: Annotated[
        list[str] | None, typer.Option(help="Confine to this project (key or id); repeatable (else all).")
    ] = None,
    operation: Annotated[
        list[str] | None, typer.Option(help="Confine to this operation; repeatable (else all of the role).")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Create a token; it is shown only now."""
    from passdown.app.operations import require_operations
    from passdown.identity.service import TokenService

    require_operations(operation or ())
    with place(data).application(create=True) as (application, call):
        service = TokenService(application.store, application.clock, application.ids)
        expires = None if days is None else application.clock.now_us() + days * _DAY_US
        projects = [_project_id(call, named) for named in project or ()]
        token, record = service.create(
            name, principal, role, host=host, expires_us=expires, projects=projects, operations=operation or ()
        )
    if json:
        screen.show_json(
            {
                "token": token,
                "principal": record.principal,
                "role": record.role,
                "token_id": record.token_id,
                "projects": list(record.projects),
                "operations": list(record.operations),
            }
        )
        return
    screen.show([token])
    screen.say(f"{record.role} token of {screen.plain(record.principal)}; it is not shown again.")


def _project_id(call: Caller, named: str) -> str:
    """The id of the project that has this key or id; ``project_not_found`` if there is none."""
    from passdown.kernel.wire import build
    from passdown.report.operations import GET_PROJECT, GetProjectAsk

    by_id = named.startswith("prj_")
    ask = build(GetProjectAsk, project_id=named if by_id else None, key=None if by_id else named)
    return call(GET_PROJECT, ask).project.project_id


@token_app.command("list")
def list_(data: Data = None, json: Json = False) -> None:
    """List the tokens, never their secrets."""
    from passdown.identity.service import TokenService
    from passdown.kernel.timestamps import format_timestamp

    with place(data).application() as (application, _):
        service = TokenService(application.store, application.clock, application.ids)
        now_us = application.clock.now_us()
        records = service.list()
    if json:
        screen.show_json(
            [
                {
                    "token_id": item.token_id,
                    "name": item.name,
                    "principal": item.principal,
                    "role": item.role,
                    "host": item.host,
                    "projects": list(item.projects),
                    "operations": list(item.operations),
                    "state": item.why_not(now_us) or "live",
                    "created_at": format_timestamp(item.created_us),
                    "expires_at": None if item.expires_us is None else format_timestamp(item.expires_us),
                }
                for item in records
            ]
        )
        return
    screen.show(
        screen.table(
            [
                (
                    item.token_id,
                    item.role,
                    item.why_not(now_us) or "live",
                    "confined" if item.projects or item.operations else "",
                    screen.plain(f"{item.name} ({item.principal})"),
                )
                for item in records
            ]
        )
    )


@token_app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help="Id from `passdown token list`.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Revoke a token at once."""
    from passdown.identity.service import TokenService

    with place(data).application() as (application, _):
        TokenService(application.store, application.clock, application.ids).revoke(token_id)
    if json:
        screen.show_json({"token_id": token_id, "state": "revoked"})
        return
    screen.say("Revoked.")
