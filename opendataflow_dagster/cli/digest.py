"""`odf digest`: one message per outage instead of 700."""

from __future__ import annotations

import json
import os
import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.ledger.settings import WEBHOOK_VARIABLE
from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError

from . import deadlines, output
from .connection import open_ledger
from .options import json_option
from .parsing import Moment

if TYPE_CHECKING:
    from opendataflow_dagster.insight.deadlines import Deadlines
    from opendataflow_dagster.insight.report import FailureReport

_CAUSES = 10
# Without brackets, some chats understand these words.
_MENTION = re.compile(r"(?<!\w)@(?=(?:channel|here|all|everyone)\b)")


@click.command()
@click.option("--since", type=Moment(), help="Failures since this time, or an age such as 6h. Default: 1h.")
@click.option("--until", type=Moment(), help="Failures before this time.")
@click.option("--webhook", is_flag=True, help=f"Post to the URL in {WEBHOOK_VARIABLE} if anything failed or is late.")
@click.option("--mail", "address", metavar="ADDRESS", help="Print an email to this address, for sendmail -t.")
@click.option("--dry-run", is_flag=True, help="With --webhook: print the message instead of posting it.")
@json_option
def digest(
    since: datetime | None, until: datetime | None, webhook: bool, address: str | None, dry_run: bool, json_wanted: bool
) -> None:
    """Summarize recent failures and missed deadlines in one message: causes, affected chunks and Jobs, next steps.

    Tells of chunks that became late in this time and still are. Without any news, --webhook posts nothing and --mail
    prints nothing.

    \b
    Example:
      odf digest --since 6h
      ODF_WEBHOOK_URL=https://... odf digest --webhook
      odf digest --mail ops@example.com | sendmail -t
    """
    from opendataflow_dagster.insight.deadlines import find_deadlines
    from opendataflow_dagster.insight.report import report_failures

    if webhook and address:
        raise InvalidInput("--webhook cannot be combined with --mail")
    with open_ledger() as ledger:
        begin = since or datetime.now(UTC) - timedelta(hours=1)
        recent = report_failures(ledger, since=begin, until=until, ask=False)
        late = find_deadlines(ledger).missed(begin, until)
    subject, text = _subject(recent, late), "\n".join(filter(None, [_text(recent), *deadlines.lines(late)]))
    has_news = bool(recent.chunks or text)
    # What is stale stays so until somebody decides: no news of its own.
    text = "\n".join(filter(None, [text, _stale(recent)]))
    posted = webhook and has_news and not dry_run
    if posted:
        _post(_for_chat(f"{subject}\n{text}"))
    if json_wanted:
        output.print_json(
            {
                "failed": len(recent.chunks),
                "causes": recent.causes,
                "late": late.late,
                "not_fresh": late.not_fresh,
                "stale": sum(count.stale for count in recent.stale),
                "subject": subject,
                "text": text,
                "posted": posted,
            }
        )
    elif posted:
        output.say(f"Posted: {subject}")
    elif not has_news:
        if address is None:
            output.say(f"{subject}\n{text}" if text else subject)
    elif address is not None:
        output.write(_mail(address, subject, text))
    else:
        output.write(f"{subject}\n{text}")


def _subject(recent: FailureReport, late: Deadlines) -> str:
    overdue = len({*(chunk.datasetid for chunk in late.late), *(data.datasetid for data in late.not_fresh)})
    is_late = f"{output.counted(overdue, 'DataSet')} late" if overdue else ""
    if not recent.chunks:
        return is_late or "No failures."
    jobs = {chunk.jobid for chunk in recent.chunks}
    chunks, causes = output.counted(len(recent.chunks), "chunk"), output.counted(len(recent.causes), "cause")
    return f"{chunks} of {output.counted(len(jobs), 'Job')} failed, {causes}" + (f"; {is_late}" if is_late else "")


def _text(recent: FailureReport) -> str:
    lines: list[str] = []
    for cause in recent.causes[:_CAUSES]:
        chunks, jobs = output.counted(cause.count, "chunk"), output.listing(cause.jobs, 3)
        # Quoted: pasting it into a shell shows exactly this chunk, whatever its name.
        command = shlex.join(["odf", "chunk", "show", cause.example.datasetid, cause.example.dataid])
        lines += [
            output.printable(f"- {chunks} of {jobs}, since {output.moment(cause.first)}: {cause.cause}"),
            "  " + output.printable(f"e.g. {cause.example}: {command}"),
        ]
    if len(recent.causes) > _CAUSES:
        lines.append(f"- and {len(recent.causes) - _CAUSES:,} more causes: odf why --failed")
    if recent.chunks:
        first = min(chunk.modified for chunk in recent.chunks).astimezone()
        lines.append(f'After fixing the cause, run: odf resubmit --failed-since "{first:%Y-%m-%d %H:%M}"')
    return "\n".join(lines)


def _stale(recent: FailureReport) -> str:
    if not (stale := sum(count.stale for count in recent.stale)):
        return ""
    names = output.listing([count.datasetid for count in recent.stale], 3)
    return output.printable(f"{output.counted(stale, 'stale chunk')} in {names}: odf stale")


def _mail(address: str, subject: str, text: str) -> str:
    from email.message import EmailMessage

    message = EmailMessage()
    try:
        message["To"] = address
        message["Subject"] = f"odf: {subject}"
    except ValueError:
        raise InvalidInput(f"{address!r} is not a valid email address; use one such as ops@example.com") from None
    message.set_content(text)
    return message.as_string()


def _for_chat(text: str) -> str:
    """Shown as it is by Slack and its relatives: a failure reason mentions nobody and is no link."""
    return _MENTION.sub("@\u200b", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _post(text: str) -> None:
    """The URL is a secret: it appears in no argument and no error."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    url = os.environ.get(WEBHOOK_VARIABLE, "")
    if not url.startswith(("https://", "http://")):
        raise InvalidInput(f"{WEBHOOK_VARIABLE} must be an http or https URL; set it to the URL of your webhook")
    try:
        request = Request(url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})  # noqa: S310
        urlopen(request, timeout=10).close()  # noqa: S310
    except HTTPError as error:
        problem = f"HTTP {error.code}"
    except (URLError, OSError, ValueError) as error:
        problem = type(error).__name__
    else:
        return
    raise OpenDataFlowError(f"the webhook in {WEBHOOK_VARIABLE} did not accept the message ({problem}); retry later")
