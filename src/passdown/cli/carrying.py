"""``handoff export`` and ``handoff verify``: one handoff as a document that can be checked without a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passdown.cli import screen
from passdown.cli.context import As, Data, Json, place
from passdown.cli.reviewing import Named, revision_ref

if TYPE_CHECKING:
    from passdown.handoff.exports import Verdict

_NOTE = "A digest is not a signature: who made it, and what was read or only said, stays the word of its maker."


def export(
    revision: Named = None,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Take along what the sources say, not their digests alone.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write (else stdout).")] = None,
    data: Data = None,
    as_: As = None,
    json: Annotated[
        bool, typer.Option("--json", help="As it always is: one JSON document.", show_default=False)
    ] = True,
) -> None:
    """Write one handoff as a document with its digests."""
    from passdown.cli.files import write_output
    from passdown.handoff.export_operations import EXPORT_HANDOFF, ExportHandoffAsk
    from passdown.kernel.canonical import canonical_bytes
    from passdown.kernel.wire import dump

    here = place(data, as_)
    scope_id = here.require_scope()
    with here.calling() as call:
        ref = revision_ref(call, scope_id, revision)
        found = call(EXPORT_HANDOFF, ExportHandoffAsk(scope_id=scope_id, handoff_ref=ref, include_bodies=bodies))
    write_output(output, canonical_bytes(dump(found)) + b"\n")
    if output is not None:
        screen.say(f"Revision {found.handoff_ref.revision}, {found.export_digest[:19]}…")
    if found.bodies_left_out:
        screen.say(f"{found.bodies_left_out} bodies did not fit and are there by their digests alone.")


def verify(
    files: Annotated[list[Path], typer.Argument(help="Exported handoffs; `-` reads stdin.")], json: Json = False
) -> None:
    """Check exported handoffs from the files alone."""
    from passdown.cli.files import read_input
    from passdown.handoff.exports import FILE_BYTES, verify_export
    from passdown.kernel.errors import PassdownError

    worst: PassdownError | None = None
    verdicts = []
    for path in files:
        named = screen.plain(str(path))
        try:
            verdict = verify_export(read_input(path, FILE_BYTES))
        except PassdownError as error:
            worst = worst or error
            verdicts.append({"file": str(path), "ok": False, **error.problem()})
            if not json:
                detail = " ".join(
                    str(error.members[key]) for key in ("digest", "field", "rule") if key in error.members
                )
                screen.show([f"✗ {named}  {error.code} {detail}".rstrip()])
                screen.say(f"  {error.spec.sentence}", f"  next: {error.spec.next_step}")
            continue
        verdicts.append({"file": str(path), "ok": True, **_value(verdict)})
        if not json:
            screen.show([f"✓ {named}  {_told(verdict)}"])
            screen.say(f"  {_NOTE}")
    if json:
        screen.show_json(verdicts)
    if worst is not None:
        raise typer.Exit(worst.spec.exit_code)


def _told(verdict: Verdict) -> str:
    ref = verdict.export.handoff_ref
    bodies = f", {verdict.bodies} bodies" if verdict.bodies else ""
    lost = f"; {verdict.unreadable} citations could not be read when it was made" if verdict.unreadable else ""
    return f"revision {ref.revision} fits its digests: content, {verdict.evidence} citations{bodies}{lost}"


def _value(verdict: Verdict) -> dict[str, object]:
    from passdown.kernel.wire import dump

    export = verdict.export
    return {
        "scope_id": export.scope_id,
        "handoff_ref": dump(export.handoff_ref),
        "content_digest": export.content_digest,
        "export_digest": export.export_digest,
        "evidence": verdict.evidence,
        "bodies_checked": verdict.bodies,
        "unreadable": verdict.unreadable,
        "note": _NOTE,
    }
