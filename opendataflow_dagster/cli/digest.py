"""`odf digest`: an outage as one message, not 700."""

from __future__ import annotations

import json
import os
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.ledger.settings import WEBHOOK_VARIABLE
from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError

from . import output
from .arguments import Moment
from .options import as_json, open_ledger

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import FailureReport

_CAUSES = 10


@click.command()
@click.option("--since", type=Moment(), help="What failed since then. Default: 1h. A time, or 6h.")
@click.option("--until", type=Moment(), help="What failed before.")
@click.option("--webhook", is_flag=True, help=f"Post it to the url in {WEBHOOK_VARIABLE}, if anything failed.")
@click.option("--mail", "address", metavar="ADDRESS", help="Print it as a mail to this address, for sendmail -t.")
@click.option("--dry-run", is_flag=True, help="With --webhook: print what would be posted.")
@as_json
def digest(
    since: datetime | None,
    until: datetime | None,
    webhook: bool,
    address: str | None,
    dry_run: bool,
    json_wanted: bool,
) -> None:
    """What failed lately, as one message: causes, how many chunks and Jobs, and what to do. Nothing failed: no message.

    \b
    Example:
      odf digest --since 6h
      ODF_WEBHOOK_URL=https://... odf digest --webhook
      odf digest --mail ops@example.com | sendmail -t
    """
    from opendataflow_dagster.insight.report import report_failures

    if webhook and address:
        raise InvalidInput("choose --webhook or --mail; for both call it twice")
    with open_ledger() as ledger:
        found = report_failures(ledger, since=since or datetime.now(UTC) - timedelta(hours=1), until=until, ask=False)
    subject, text = _subject(found), _text(found)
    posted = bool(webhook and found.chunks and not dry_run)
    if posted:
        _post(f"{subject}\n{text}")
    if json_wanted:
        output.print_json(
            {"failed": len(found.chunks), "causes": found.causes, "subject": subject, "text": text, "posted": posted}
        )
    elif posted:
        output.say(f"Posted: {subject}")
    elif not found.chunks:
        if address is None:
            output.say(subject)
    elif address is not None:
        click.echo(_mail(address, subject, text))
    else:
        click.echo(f"{subject}\n{text}")


def _subject(found: FailureReport) -> str:
    if not found.chunks:
        return "Nothing failed."
    jobs = {one.jobid for one in found.chunks}
    chunks, causes = output.counted(len(found.chunks), "chunk"), output.counted(len(found.causes), "cause")
    return f"{chunks} of {output.counted(len(jobs), 'Job')} failed, of {causes}"


def _text(found: FailureReport) -> str:
    lines: list[str] = []
    for one in found.causes[:_CAUSES]:
        jobs = ", ".join(one.jobs[:3]) + (f" and {len(one.jobs) - 3:,} more" if len(one.jobs) > 3 else "")
        # Whoever pastes it into a shell gets exactly this chunk.
        command = shlex.join(["odf", "chunk", "show", one.example.datasetid, one.example.dataid])
        lines += [
            output.printable(
                f"- {output.counted(one.count, 'chunk')} of {jobs}, since {output.moment(one.first)}: {one.cause}"
            ),
            "  " + output.printable(f"for example {one.example}: {command}"),
        ]
    if len(found.causes) > _CAUSES:
        lines.append(f"- and {len(found.causes) - _CAUSES:,} more causes: odf why --failed")
    if found.chunks:
        first = min(one.modified for one in found.chunks).astimezone()
        lines.append(f'When it is repaired: odf resubmit --failed-since "{first:%Y-%m-%d %H:%M}"')
    return "\n".join(
        f"  {output.printable(line[2:])}" if line.startswith("  ") else output.printable(line) for line in lines
    )


def _mail(address: str, subject: str, text: str) -> str:
    from email.message import EmailMessage

    message = EmailMessage()
    try:
        message["To"] = address
        message["Subject"] = f"odf: {subject}"
    except ValueError:
        raise InvalidInput(f"{address!r} is no mail address; give one like ops@example.com") from None
    message.set_content(text)
    return message.as_string()


def _post(text: str) -> None:
    """The url is a secret: it is in no argument and in no error."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    url = os.environ.get(WEBHOOK_VARIABLE, "")
    if not url.startswith(("https://", "http://")):
        raise InvalidInput(f"{WEBHOOK_VARIABLE} is not set to an http or https url; set it to that of your webhook")
    try:
        request = Request(url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})  # noqa: S310
        urlopen(request, timeout=10).close()  # noqa: S310
    except HTTPError as error:
        problem = f"HTTP {error.code}"
    except (URLError, OSError, ValueError) as error:
        problem = type(error).__name__
    else:
        return
    raise OpenDataFlowError(f"the webhook in {WEBHOOK_VARIABLE} did not take the message ({problem}); try again")
