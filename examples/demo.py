"""`make demo`: a month of the reference pipeline on the embedded Postgres and a local Spark.

    python -m examples.demo [--days N]    only the first N days of January 2013

The flights out of New York: raw, cleaned, and statistics per carrier. One day of the source is corrupt and fails its
check. One process is killed in the middle of its work. The five answers say why nothing runs on what they left. One
RESUBMIT typed in SQL heals everything in order. All runs are Dagster runs, as the readiness sensor starts them.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from examples.flow import Flow
from opendataflow_dagster.ledger import chunks, schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.psql import psql as psql_program
from opendataflow_dagster.ledger.settings import database_url, home
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId
from opendataflow_dagster.model.verdict import Verdict
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.job_run import delete_run

PROJECT = Path(__file__).resolve().parent.parent
SPOILED, DIES = DataId("2013-01-03"), DataId("2013-01-05")
DATASETS = [DatasetId(name) for name in ("raw_flights", "raw_weather", "clean_flights", "carrier_stats")]

screen = Console(highlight=False, soft_wrap=True)


def main(days: list[DataId]) -> None:
    began = time.monotonic()
    tell("Start the embedded Postgres, Dagster's tables and a local Spark (takes some seconds)")
    url = database_url()
    with Ledger(url, actor="demo") as ledger:
        schema.install(ledger)
        with quiet() as log:
            flow = Flow(ledger)
        tell_the_story(flow, ledger, url, days)
    screen.print(f"\n{time.monotonic() - began:.0f} seconds in total. The log of Spark is {log}.", markup=False)
    screen.print("To see it in Dagster's UI, run make dev and open http://127.0.0.1:3000", markup=False)


def tell_the_story(flow: Flow, ledger: Ledger, url: str, days: list[DataId]) -> None:
    forget(ledger, days)
    tell("Request two raw DataSets in Dagster. On January 3 the source sends a delay of 99999 minutes")
    with flow.spoiled_source(SPOILED):
        for name in ("raw_flights", "raw_weather"):
            with progress(ledger, name, days):
                flow.ask_for(name, days)

    tell("A process claims clean_flights of January 5, and is killed with SIGKILL in the middle of its work")
    kill_a_process_at_work()
    tell("The readiness sensor finds the chunks that can run, and starts them")
    heal_all(flow, ledger)
    show_statuses(ledger, days)

    tell("Why is clean_flights of January 3 not made, and carrier_stats of January 5? The five questions:")
    show_verdict(gate(ledger, "clean_flights", [SPOILED])[0])
    show_verdict(gate(ledger, "carrier_stats", [DIES])[0])

    tell("The source is fixed. One statement in psql resubmits the corrupt day and what the killed process left:")
    psql(
        url,
        "update dataflow.datastatus set status = 'RESUBMIT' where locktype = 'OUT' and "
        "(datasetid in ('raw_flights', 'clean_flights') and dataid = '2013-01-03' or status = 'RUNNING')",
    )
    tell("The sensor does the rest, producers before consumers. No other chunk runs again")
    heal_all(flow, ledger)
    show_statuses(ledger, days)

    tell("The history of clean_flights of January 3")
    show_history(ledger, ChunkKey(datasetid=DatasetId("clean_flights"), dataid=SPOILED))

    source, counted = flow.flights_in_source(days), flow.flights_counted(days)
    tell(f"The source has {source:,} flights on these days, and carrier_stats counts {counted:,}")
    if source != counted:
        sys.exit("These must be equal.")


def forget(ledger: Ledger, days: list[DataId]) -> None:
    """Delete the chunks of an earlier demo. Their versions and history stay."""
    for name in DATASETS:
        for day in days:
            delete_run(ledger, name, day, by="demo", reason="the demo starts over")


def heal_all(flow: Flow, ledger: Ledger) -> None:
    """What the daemon does: tick the sensor and run what it requests, until it requests nothing."""
    while requests := flow.tick():
        for request in requests:
            with progress(ledger, request.job, request.dataids):
                flow.run(request)


def kill_a_process_at_work() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "examples.demo", "--work"], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None  # noqa: S101
    screen.print(f"  {child.stdout.readline().strip()}")
    child.send_signal(signal.SIGKILL)
    child.wait()
    screen.print(f"  process {child.pid} is gone")


def work_forever() -> None:
    with Ledger(database_url(), actor="demo") as ledger:
        held = claim(ledger, "clean_flights", DIES)
        screen.print(f"process {os.getpid()} holds claim {held.claim_id} and works", soft_wrap=True)
        signal.pause()


@contextmanager
def progress(ledger: Ledger, name: str, dataids: Sequence[str]) -> Iterator[None]:
    """A progress bar over the chunks in the ledger."""
    keys = [ChunkKey(datasetid=DatasetId(name), dataid=DataId(dataid)) for dataid in dataids]
    over = threading.Event()
    columns = (TextColumn("  {task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())

    def ended() -> int:
        with ledger.statement() as statement:
            return sum(chunk.status in ("READY", "FAILED") for chunk in chunks.find(statement, keys))

    with Progress(*columns, console=screen) as bar:
        task = bar.add_task(name, total=len(keys))

        def watch() -> None:
            while not over.wait(0.5):
                bar.update(task, completed=ended())

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            bar.update(task, completed=ended())


@contextmanager
def quiet() -> Iterator[Path]:
    """Send stderr to a file: Spark's driver inherits it and prints a lot."""
    log = home() / "demo.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    kept = os.dup(2)
    with log.open("w") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def tell(text: str) -> None:
    screen.print(f"\n[bold]> {text}[/bold]")


def psql(url: str, statement: str) -> None:
    """What a person types. The password is passed in the environment, never as an argument."""
    screen.print(f"  psql> {statement}")
    program, environment = psql_program(url)
    done = subprocess.run([program, "-c", statement], env=environment, check=True, capture_output=True, text=True)
    screen.print(f"  {done.stdout.strip()}")


def show_statuses(ledger: Ledger, days: list[DataId]) -> None:
    """One letter per day."""
    letters = {"READY": "[green]#[/]", "FAILED": "[red]F[/]", "RUNNING": "[yellow]R[/]", "RESUBMIT": "[cyan]S[/]"}
    table = Table("DataSet", Column("January 2013", no_wrap=True), Column("", no_wrap=True))
    with ledger.statement() as statement:
        rows = chunks.find(statement, [ChunkKey(datasetid=name, dataid=day) for name in DATASETS for day in days])
    words = {(chunk.datasetid, chunk.dataid): chunk.status or "NULL" for chunk in rows}
    for name in DATASETS:
        row = [words.get((name, day), "-") for day in days]
        counted = ", ".join(f"{row.count(word)} {word}" for word in dict.fromkeys(row) if word != "-")
        table.add_row(name, "".join(letters.get(word, "[dim].[/]") for word in row), counted)
    screen.print(table)


def show_verdict(verdict: Verdict) -> None:
    screen.print(f"  {verdict.jobid}/{verdict.dataid}")
    for answer in verdict.answers:
        colour = "green" if answer.yes else "red"
        screen.print(f"    {answer.question:7}[{colour}]{'yes' if answer.yes else 'no ':3}[/] ", end="")
        screen.print(answer.reason, markup=False)
    screen.print(f"    verdict: {verdict.code or 'go'}")


def show_history(ledger: Ledger, key: ChunkKey) -> None:
    with ledger.statement() as statement:
        for event in chunks.history(statement, key):
            if event.locktype == "OUT":
                change = f"{event.old_status or '-'} -> {event.new_status or '-'}"
                by = event.actor or f"{event.login}, in psql"
                screen.print(f"  {event.at:%H:%M:%S}  {change:20} {by:10} {(event.reason or '')[:110]}", markup=False)


if __name__ == "__main__":
    if "--work" in sys.argv:
        work_forever()
    else:
        options = argparse.ArgumentParser(description="Run the demo of the reference pipeline.")
        options.add_argument("--days", type=int, default=31, choices=range(6, 32), metavar="6..31")
        main([DataId(f"2013-01-{day:02}") for day in range(1, options.parse_args().days + 1)])
