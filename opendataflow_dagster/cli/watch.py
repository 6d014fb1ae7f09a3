"""`odf watch`: the same, live."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from . import output
from .arguments import Number
from .options import as_json, open_ledger

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.chunks import Event
    from opendataflow_dagster.ledger.database import Ledger

#: So long a transaction may be open, and its changes are still seen.
_GRACE = timedelta(minutes=1)
_ALL = 2**31 - 1


@click.command()
@click.option("--every", "seconds", default=2.0, show_default=True, type=Number(min=0.1, max=86_400), help="Seconds.")
@click.option("--looks", type=click.IntRange(min=1), help="End after so many looks. Default: until Ctrl-C.")
@as_json
def watch(seconds: float, looks: int | None, json_wanted: bool) -> None:
    """Look again and again: on a terminal the status, redrawn; in a pipe or with --json each change as a line.

    \b
    Example:
      odf watch
      odf watch --every 10 | tee changes.log
      odf watch --json | jq .new_status
    """
    with open_ledger() as ledger:
        follower = _Follower(ledger, json_wanted)
        left = looks
        try:
            while left is None or left > 0:
                follower.look()
                left = None if left is None else left - 1
                if left != 0:
                    time.sleep(seconds)
        except KeyboardInterrupt:
            click.echo()


class _Follower:
    def __init__(self, ledger: Ledger, json_wanted: bool) -> None:
        self._ledger = ledger
        self._json = json_wanted
        self._since: datetime | None = None
        self._seen: set[int] = set()
        self._lines = json_wanted or not output.is_terminal()

    def look(self) -> None:
        if self._lines:
            self._new_events()
            return
        from opendataflow_dagster.insight.status import status

        from .status import glance_of

        glance = status(self._ledger)
        click.clear()
        output.heading(f"odf watch, {time.strftime('%H:%M:%S')}; Ctrl-C ends it")
        glance_of(glance)

    def _new_events(self) -> None:
        """The last ten, and then whatever is new. Who was earlier may commit later: each look goes back a little, and
        what was seen is not said again. The times are the ledger's own."""
        from opendataflow_dagster.insight.history import recent_events

        if self._since is None:
            self._since = datetime.now(UTC) - timedelta(hours=1)
            shown = recent_events(self._ledger, since=self._since, count=10)
            self._since = shown[0].at - _GRACE if shown else self._since
            self._seen = {one.event_id for one in recent_events(self._ledger, since=self._since, count=_ALL)}
        else:
            found = recent_events(self._ledger, since=self._since, count=_ALL)
            shown = [one for one in found if one.event_id not in self._seen]
            self._since = max([self._since, *(one.at - _GRACE for one in found)])
            self._seen = {one.event_id for one in found if one.at >= self._since}
        for event in reversed(shown):
            click.echo(json.dumps(output.jsonable(event), ensure_ascii=False) if self._json else _line(event))


def _line(event: Event) -> str:
    change = f"{event.old_status or '-'} -> {event.new_status or 'gone'}"
    reason = f": {event.reason}" if event.reason else ""
    at = f"{event.at.astimezone():%Y-%m-%d %H:%M:%S}"
    return output.printable(f"{at}  {event.datasetid}/{event.dataid}  {change}  {event.actor or event.login}{reason}")
