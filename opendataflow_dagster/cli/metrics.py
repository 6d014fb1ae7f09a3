"""`odf metrics`: Prometheus metrics as text, a file or an endpoint."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError
from opendataflow_dagster.model.text import escaped

from . import output
from .connection import open_ledger
from .options import json_option

if TYPE_CHECKING:
    from .connection import Ledger

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.option("--textfile", type=click.Path(dir_okay=False, path_type=Path), help="Write a file for node_exporter.")
@click.option("--listen", metavar="[HOST:]PORT", help="Serve http://HOST:PORT/metrics until Ctrl-C. HOST: 127.0.0.1.")
@click.option(
    "--allow-remote", is_flag=True, help="Allow --listen on a non-loopback address. There is no authentication."
)
@json_option
def metrics(textfile: Path | None, listen: str | None, allow_remote: bool, json_wanted: bool) -> None:
    """Export metrics for Prometheus: chunks by status, waiting times, throughput, deadlines and limits.

    \b
    Example:
      odf metrics
      odf metrics --textfile /var/lib/node_exporter/odf.prom
      odf metrics --listen 9187
    """
    if sum((textfile is not None, listen is not None, json_wanted)) > 1:
        raise InvalidInput("--textfile, --listen and --json cannot be combined")
    if allow_remote and listen is None:
        raise InvalidInput("--allow-remote requires --listen")
    if listen is not None:
        host, port = _address(listen, allow_remote)
        _serve(host, port)
        return
    with open_ledger() as ledger:
        families = list(_families(ledger))
    if json_wanted:
        samples = (sample for family in families for sample in family.samples)
        values = [{"name": sample.name, "labels": sample.labels, "value": sample.value} for sample in samples]
        output.print_json({"metrics": values})
        return
    registry = _registry(lambda: families)
    if textfile is None:
        from prometheus_client import generate_latest

        output.write(generate_latest(registry).decode(), nl=False)
        return
    from prometheus_client import write_to_textfile

    try:
        # Atomic: a concurrent reader sees the old file or the new one.
        write_to_textfile(str(textfile), registry)
    except OSError as error:
        raise InvalidInput(f"{textfile} cannot be written ({error.strerror}); choose another file") from None
    output.say(f"Wrote {textfile}.")


def _families(ledger: Ledger) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily as Gauge

    from opendataflow_dagster.insight.report import report_ledger

    current = report_ledger(ledger)
    up = Gauge("odf_up", "1 if the ledger can be reached.", value=1)
    chunks = Gauge("odf_chunks", "Chunks by DataSet and status.", labels=["dataset", "status"])
    waiting = Gauge(
        "odf_oldest_waiting_timestamp_seconds", "When the oldest waiting chunk began to wait.", labels=["dataset"]
    )
    expected = Gauge(
        "odf_expected_chunks", "Chunks that exist or are missing, without SKIPPED ones.", labels=["dataset"]
    )
    missing = Gauge("odf_missing_chunks", "Expected chunks that do not exist.", labels=["dataset"])
    other_code = Gauge("odf_other_code_chunks", "READY chunks made by other code than the current.", labels=["dataset"])
    stale = Gauge("odf_stale_chunks", "READY chunks made from what is no longer current.", labels=["dataset"])
    pace = Gauge("odf_versions_per_minute", "Recent rate of published versions.", labels=["dataset"])
    runnable = Gauge("odf_runnable_chunks", "Chunks that can run now.", labels=["job"])
    blocked = Gauge("odf_blocked_chunks", "Chunks whose inputs are READY but that are blocked.", labels=["job"])
    for dataset in current.glance.datasets:
        # Foreign status words may differ only in characters that look the same when they are escaped.
        counts: Counter[str] = Counter()
        for status, count in dataset.counts.items():
            counts[escaped(str(status))] += count
        for status, count in counts.items():
            chunks.add_metric([dataset.datasetid, status], count)
        expected.add_metric([dataset.datasetid], dataset.expected)
        missing.add_metric([dataset.datasetid], dataset.missing)
        other_code.add_metric([dataset.datasetid], dataset.other_code)
        stale.add_metric([dataset.datasetid], dataset.stale)
        if dataset.oldest_waiting is not None:
            waiting.add_metric([dataset.datasetid], dataset.oldest_waiting.timestamp())
        if dataset.pace is not None:
            pace.add_metric([dataset.datasetid], dataset.pace)
    late = Gauge("odf_late_chunks", "Chunks that missed their deadline and are not READY.", labels=["dataset"])
    age = Gauge("odf_freshness_seconds", "Time since the newest READY chunk became READY.", labels=["dataset"])
    fresh_within = Gauge("odf_freshness_limit_seconds", "How large odf_freshness_seconds may be.", labels=["dataset"])
    for dataset in current.glance.datasets:
        late.add_metric([dataset.datasetid], len(current.glance.deadlines.late_of(dataset.datasetid)))
    for freshness in current.glance.deadlines.freshness:
        if freshness.age is not None:
            age.add_metric([freshness.datasetid], freshness.age.total_seconds())
        fresh_within.add_metric([freshness.datasetid], freshness.fresh_within.total_seconds())
    for jobid, output_ in {dataset.jobid: dataset for dataset in current.glance.datasets if dataset.jobid}.items():
        runnable.add_metric([jobid], output_.runnable)
        blocked.add_metric([jobid], output_.blocked)
    usual = Gauge("odf_run_slow_after_seconds", "A run that takes longer is slower than usual.", labels=["job"])
    newest = Gauge("odf_run_newest_seconds", "Duration of the newest run so far.", labels=["job"])
    slow = Gauge("odf_run_slow", "1 if the newest run is slower than usual.", labels=["job"])
    for run in current.newest_runs:
        newest.add_metric([run.jobid], run.duration.total_seconds())
        slow.add_metric([run.jobid], int(run.is_slow))
        if run.limit is not None:
            usual.add_metric([run.jobid], run.limit.total_seconds())
    paused = Gauge("odf_job_paused", "1 if an operator has paused the Job.", labels=["job"])
    limit = Gauge("odf_job_concurrency_limit", "Concurrency limit of the Job.", labels=["job"])
    for control in current.glance.controls:
        paused.add_metric([control.jobid], int(control.paused is not None))
        if control.concurrency is not None:
            limit.add_metric([control.jobid], control.concurrency)
    yield from (up, chunks, expected, missing, stale, other_code, waiting, pace, runnable, blocked)
    yield from (late, age, fresh_within)
    yield from (usual, newest, slow, paused, limit)


def _registry(collect: Callable[[], list[Any]]) -> Any:
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

    class Families(Collector):
        def collect(self) -> list[Any]:
            return collect()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families())
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

        def collect() -> list[Any]:
            # An outage of the ledger is a metric, not a failed scrape.
            try:
                return list(_families(ledger))
            except OpenDataFlowError:
                return [Gauge("odf_up", "1 if the ledger can be reached.", value=0)]

        try:
            server = make_server(host, port, make_wsgi_app(_registry(collect)), Server, Quiet)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port} ({error.strerror}); choose another port") from None
        with server:
            shown = f"[{host}]" if ":" in host else host
            output.say(f"http://{shown}:{server.server_port}/metrics; stop with Ctrl-C")
            # In a thread: in the main thread, wsgiref treats Ctrl-C during a response as an error of the response.
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
        raise InvalidInput(f"{text!r} is not a valid address; use PORT or HOST:PORT")
    host = host.strip("[]") if colon else "127.0.0.1"
    if host not in _LOOPBACK and not allow_remote:
        raise InvalidInput(
            f"{host} is not a loopback address, and there is no authentication; to allow it, pass --allow-remote"
        )
    return host, int(port)
