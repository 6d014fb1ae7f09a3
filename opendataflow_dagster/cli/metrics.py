"""`odf metrics`: for Prometheus, as a text file or an endpoint."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError

from . import output
from .options import as_json, open_ledger

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import LedgerReport
    from opendataflow_dagster.ledger.database import Ledger

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.option("--textfile", type=click.Path(dir_okay=False, path_type=Path), help="Write this file, for node_exporter.")
@click.option("--listen", metavar="[HOST:]PORT", help="Serve http://127.0.0.1:PORT/metrics until Ctrl-C.")
@click.option(
    "--allow-remote", is_flag=True, help="Let --listen bind another address than loopback: there is no login."
)
@as_json
def metrics(textfile: Path | None, listen: str | None, allow_remote: bool, json_wanted: bool) -> None:
    """Chunks by status, what waits, pace, SLA and limits, in the format of Prometheus.

    \b
    Example:
      odf metrics
      odf metrics --textfile /var/lib/node_exporter/odf.prom
      odf metrics --listen 9187
    """
    if sum((textfile is not None, listen is not None, json_wanted)) > 1:
        raise InvalidInput("--textfile, --listen and --json are three ways to say it; choose one")
    if allow_remote and listen is None:
        raise InvalidInput("--allow-remote goes with --listen; add it, or leave it out")
    if listen is not None:
        host, port = _address(listen, allow_remote)
        _serve(host, port)
        return
    with open_ledger() as ledger:
        families = list(_families(ledger))
    if json_wanted:
        samples = [one for family in families for one in family.samples]
        output.print_json(
            {"metrics": [{"name": one.name, "labels": one.labels, "value": one.value} for one in samples]}
        )
        return
    registry = _registry(lambda: families)
    if textfile is None:
        from prometheus_client import generate_latest

        click.echo(generate_latest(registry).decode(), nl=False)
        return
    from prometheus_client import write_to_textfile

    try:
        # Whole or not at all: whoever reads it meanwhile sees the old one.
        write_to_textfile(str(textfile), registry)
    except OSError as error:
        raise InvalidInput(f"{textfile} cannot be written ({error.strerror}); give another file") from None
    output.say(f"Wrote {textfile}.")


def _families(ledger: Ledger) -> Iterator[Any]:
    from opendataflow_dagster.insight.report import report_ledger

    yield from _of(report_ledger(ledger))


def _of(found: LedgerReport) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily as Gauge

    up = Gauge("odf_up", "The ledger answers.", value=1)
    chunks = Gauge("odf_chunks", "Chunks by DataSet and status.", labels=["dataset", "status"])
    waiting = Gauge("odf_oldest_waiting_timestamp_seconds", "Since when the oldest chunk waits.", labels=["dataset"])
    pace = Gauge("odf_versions_per_minute", "Versions published a minute, lately.", labels=["dataset"])
    runnable = Gauge("odf_runnable_chunks", "Chunks that can run now.", labels=["job"])
    blocked = Gauge("odf_blocked_chunks", "Chunks whose inputs are READY and that have a no.", labels=["job"])
    for one in found.glance.datasets:
        for word, count in one.counts.items():
            chunks.add_metric([one.datasetid, word], count)
        if one.oldest_waiting is not None:
            waiting.add_metric([one.datasetid], one.oldest_waiting.timestamp())
        if one.pace is not None:
            pace.add_metric([one.datasetid], one.pace)
    for job, can, cannot in {(one.jobid, one.runnable, one.blocked) for one in found.glance.datasets if one.jobid}:
        runnable.add_metric([job], can)
        blocked.add_metric([job], cannot)
    sla_limit = Gauge("odf_run_sla_limit_seconds", "A run that takes longer breaches its SLA.", labels=["job"])
    newest = Gauge("odf_run_newest_seconds", "The newest run, so far.", labels=["job"])
    breached = Gauge("odf_run_sla_breached", "The newest run takes longer than its SLA limit.", labels=["job"])
    for run in found.sla:
        newest.add_metric([run.jobid], run.duration.total_seconds())
        breached.add_metric([run.jobid], int(run.breached))
        if run.limit is not None:
            sla_limit.add_metric([run.jobid], run.limit.total_seconds())
    paused = Gauge("odf_job_paused", "An operator has paused the Job.", labels=["job"])
    limit = Gauge("odf_job_concurrency_limit", "At most so many chunks at a time.", labels=["job"])
    for control in found.glance.controls:
        paused.add_metric([control.jobid], int(control.paused is not None))
        if control.concurrency is not None:
            limit.add_metric([control.jobid], control.concurrency)
    yield from (up, chunks, waiting, pace, runnable, blocked, sla_limit, newest, breached, paused, limit)


class _Collector:
    def __init__(self, look: Any) -> None:
        self._look = look

    def collect(self) -> Any:
        return self._look()


def _registry(look: Any) -> Any:
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(look))
    return registry


def _serve(host: str, port: int) -> None:
    from threading import Thread
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    from prometheus_client import make_wsgi_app
    from prometheus_client.core import GaugeMetricFamily as Gauge

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    class Server(WSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with open_ledger() as ledger:

        def look() -> list[Any]:
            # An outage of the ledger is a fact to be seen, not a scrape that failed.
            try:
                return list(_families(ledger))
            except OpenDataFlowError:
                return [Gauge("odf_up", "The ledger answers.", value=0)]

        try:
            server = make_server(host, port, make_wsgi_app(_registry(look)), Server, Quiet)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port} ({error.strerror}); give another port") from None
        with server:
            shown = f"[{host}]" if ":" in host else host
            output.say(f"http://{shown}:{server.server_port}/metrics; Ctrl-C ends it")
            # Beside us: wsgiref takes a Ctrl-C in the middle of an answer for an error of the answer.
            serving = Thread(target=server.serve_forever)
            serving.start()
            try:
                serving.join()
            except KeyboardInterrupt:
                output.say("")
            finally:
                server.shutdown()
                serving.join()


def _address(text: str, allow_remote: bool) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise InvalidInput(f"{text!r} is no address; write PORT or HOST:PORT")
    host = host.strip("[]") if colon else "127.0.0.1"
    if host not in _LOOPBACK and not allow_remote:
        raise InvalidInput(
            f"{host} is not this machine alone, and there is no login; say --allow-remote if you mean it"
        )
    return host, int(port)
