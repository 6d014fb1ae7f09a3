"""`odf watch`: the status or the changes, live."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from . import output
from .connection import open_ledger
from .history import transition
from .options import json_option
from .parsing import Number

if TYPE_CHECKING:
    from opendataflow_dagster.insight.history import Event

    from .connection import Ledger

#: A transaction that stays open no longer than this does not hide its changes from us.
_GRACE = timedelta(minutes=1)
_ALL = 2**31 - 1


@click.command()
@click.option(
    "--every", "seconds", default=2.0, show_default=True, type=Number(min=0.1, max=86_400), help="Interval in seconds."
)
@click.option("--looks", type=click.IntRange(min=1), help="Stop after this many updates. Default: run until Ctrl-C.")
@json_option
def watch(seconds: float, looks: int | None, json_wanted: bool) -> None:
    """Follow the ledger: redraw the status on a terminal; print one line per change in a pipe or with --json.

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
                follower.update()
                left = None if left is None else left - 1
                if left != 0:
                    time.sleep(seconds)
        except KeyboardInterrupt:
            output.write()


class _Follower:
    def __init__(self, ledger: Ledger, json_wanted: bool) -> None:
        self._ledger = ledger
        self._json = json_wanted
        self._since: datetime | None = None
        self._seen: set[int] = set()
        self._lines = json_wanted or not output.is_terminal()

    def update(self) -> None:
        if self._lines:
            self._print_new_events()
            return
        from opendataflow_dagster.insight.status import status

        from .status import show

        glance = status(self._ledger)
        click.clear()
        output.heading(f"odf watch, {time.strftime('%H:%M:%S')}; stop with Ctrl-C")
        show(glance.datasets, glance.controls, glance.running, glance.deadlines)

    def _print_new_events(self) -> None:
        """The last ten, then every new one. An earlier change may commit later, so each update looks back a little
        and skips what it has printed. Times are those of the ledger's clock."""
        from opendataflow_dagster.insight.history import recent_events

        if self._since is None:
            self._since = datetime.now(UTC) - timedelta(hours=1)
            new = recent_events(self._ledger, since=self._since, count=10)
            self._since = new[0].at - _GRACE if new else self._since
            self._seen = {event.event_id for event in recent_events(self._ledger, since=self._since, count=_ALL)}
        else:
            events = recent_events(self._ledger, since=self._since, count=_ALL)
            new = [event for event in events if event.event_id not in self._seen]
            self._since = max([self._since, *(event.at - _GRACE for event in events)])
            self._seen = {event.event_id for event in events if event.at >= self._since}
        for event in reversed(new):
            output.write(output.json_text(event) if self._json else _line(event))


def _line(event: Event) -> str:
    change = transition(event.old_status, event.new_status)
    reason = f": {event.reason}" if event.reason else ""
    at = f"{event.at.astimezone():%Y-%m-%d %H:%M:%S}"
    return output.printable(f"{at}  {event.datasetid}/{event.dataid}  {change}  {event.actor or event.login}{reason}")
