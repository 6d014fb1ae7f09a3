"""`make demo`: the path of a chunk on the embedded Postgres, told on the screen.

Two Jobs over a week of small files. One chunk fails, one Job dies; the five answers say why nothing runs on them; one
RESUBMIT typed in psql heals both.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from opendataflow_dagster.ledger import chunks, schema
from opendataflow_dagster.ledger.database import Ledger, in_database
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.psql import psql as psql_program
from opendataflow_dagster.ledger.settings import home
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import OpenDataFlowError
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.model.manifest import CheckResult, File, NewManifest
from opendataflow_dagster.model.partitions import daily
from opendataflow_dagster.model.verdict import Verdict
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import fail

WEEK = daily("2024-01-01", "2024-01-07")
DAYS = [DataId(f"2024-01-0{day}") for day in range(1, 8)]
FLIGHTS, DELAYS = DatasetId("flights"), DatasetId("delays")
LOAD = Job(jobid=JobId("load"), outputs=(FLIGHTS,))
AVERAGE = Job(jobid=JobId("average"), inputs=(Input(datasetid=FLIGHTS),), outputs=(DELAYS,))

screen = Console(highlight=False, soft_wrap=True)


def main() -> None:
    folder = home() / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    tell("Start the embedded Postgres and install the ledger in a database of the demo's own")
    server = EmbeddedPostgres(home())
    url = in_database(server.start(), "demo")
    psql(server.url(), "drop database if exists demo with (force)", quiet=True)
    psql(server.url(), "create database demo", quiet=True)
    with Ledger(url, actor="demo") as ledger:
        schema.install(ledger)
        run(ledger, url, folder)
    screen.print(
        '\nThe database stays for you to look around in: psql "$(.venv/bin/odf db url)", then \\c demo', markup=False
    )


def run(ledger: Ledger, url: str, folder: Path) -> None:
    tell("Register two Jobs, load: -> flights and average: flights -> delays, and plan a week")
    datasets = [Dataset(datasetid=one, location=str(folder / one), partitions=WEEK) for one in (FLIGHTS, DELAYS)]
    register(ledger, datasets, [LOAD, AVERAGE])
    plan(ledger, LOAD, DAYS)
    show_statuses(ledger)

    tell("Run load until nothing is left; on 2024-01-03 the source sends a word where a number should be")
    while claims := claim_next(ledger, "load"):
        publish(ledger, claims[0], load(claims[0], folder, spoiled=claims[0].dataid == "2024-01-03"))

    tell("Run average. It fails on the spoiled day, and dies on 2024-01-05 without a word")
    average_all(ledger, folder, dies_on="2024-01-05")
    show_statuses(ledger)

    tell("Why does nobody run delays/2024-01-03? Ask the five questions")
    show_verdict(gate(ledger, "average", ["2024-01-03"])[0])
    tell("And a day that the week does not have?")
    show_verdict(gate(ledger, "average", ["2024-01-09"])[0])

    tell("The source is repaired. One act, typed in psql, for all three chunks:")
    psql(
        url,
        "update dataflow.datastatus set status = 'RESUBMIT' where locktype = 'OUT' and (dataid = '2024-01-03' "
        "or status = 'RUNNING')",
    )
    tell("The normal flow heals them, producers before consumers")
    while claims := claim_next(ledger, "load"):
        publish(ledger, claims[0], load(claims[0], folder, spoiled=False))
    average_all(ledger, folder)
    show_statuses(ledger)

    tell("The whole story of delays/2024-01-03")
    show_history(ledger, ChunkKey(datasetid=DELAYS, dataid=DataId("2024-01-03")))


def average_all(ledger: Ledger, folder: Path, dies_on: str | None = None) -> None:
    while claims := claim_next(ledger, "average"):
        claim = claims[0]
        if claim.dataid == dies_on:
            continue  # nobody publishes or releases it: what a killed process leaves behind
        try:
            publish(ledger, claim, average(claim, folder))
        except OpenDataFlowError as error:
            fail(ledger, claim, str(error))


def load(claim: Claim, folder: Path, *, spoiled: bool) -> NewManifest:
    day = int(claim.dataid[-2:])
    delays = [str(number * day % 41 - 5) for number in range(1, 200)]
    if spoiled:
        delays[7] = "n/a"
    return write(claim, folder, [[f"F{number}", delay] for number, delay in enumerate(delays)], [])


def average(claim: Claim, folder: Path) -> NewManifest:
    (source,) = claim.manifests
    with (Path(source.location) / source.files[0].path).open(newline="") as file:
        delays = [row[1] for row in csv.reader(file)]
    numbers = [int(one) for one in delays if one.lstrip("-").isdigit()]
    bad = len(delays) - len(numbers)
    check = CheckResult(name="every delay is a number", passed=not bad, detail=f"{bad} of {len(delays)} are not")
    return write(claim, folder, [[claim.dataid, f"{sum(numbers) / len(numbers):.2f}"]], [check])


def write(claim: Claim, folder: Path, rows: Sequence[Sequence[str]], checks: Sequence[CheckResult]) -> NewManifest:
    """Each claim writes once, into a folder that belongs to it alone."""
    target = folder / claim.outputs[0] / claim.dataid / f"claim-{claim.claim_id}"
    target.mkdir(parents=True)
    with (target / "part-0.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    size = (target / "part-0.csv").stat().st_size
    return NewManifest(
        location=str(target),
        files=(File(path="part-0.csv", size=size),),
        row_count=len(rows),
        checks=tuple(checks),
    )


def tell(text: str) -> None:
    screen.print(f"\n[bold]> {text}[/bold]")


def psql(url: str, statement: str, *, quiet: bool = False) -> None:
    """What a person types. The password goes through the environment, never through an argument."""
    if not quiet:
        screen.print(f"  psql> {statement}")
    program, environment = psql_program(url)
    said = subprocess.run([program, "-c", statement], env=environment, check=True, capture_output=True, text=True)
    if not quiet:
        screen.print(f"  {said.stdout.strip()}")


def show_statuses(ledger: Ledger) -> None:
    colours = {"READY": "green", "FAILED": "red", "RUNNING": "yellow", "RESUBMIT": "cyan"}
    table = Table("DataSet", *(day[5:] for day in DAYS))
    with ledger.statement() as statement:
        found = chunks.find(
            statement, [ChunkKey(datasetid=name, dataid=day) for name in (FLIGHTS, DELAYS) for day in DAYS]
        )
    words = {(one.datasetid, one.dataid): one.status or "NULL" for one in found}
    for name in (FLIGHTS, DELAYS):
        row = [words.get((name, day), "-") for day in DAYS]
        table.add_row(name, *(f"[{colours.get(word, 'dim')}]{word}[/]" for word in row))
    screen.print(table)


def show_verdict(verdict: Verdict) -> None:
    for answer in verdict.answers:
        colour = "green" if answer.yes else "red"
        screen.print(f"  {answer.question:7}[{colour}]{'yes' if answer.yes else 'no ':3}[/] {answer.reason}")
    screen.print(f"  verdict: {verdict.code or 'go'}")


def show_history(ledger: Ledger, key: ChunkKey) -> None:
    with ledger.statement() as statement:
        for event in chunks.history(statement, key):
            change = f"{event.old_status or '-'} -> {event.new_status or '-'}"
            by = event.actor or f"{event.login}, in psql"
            screen.print(f"  {event.at:%H:%M:%S.%f}  {change:20} {by:14} {event.reason or ''}")


if __name__ == "__main__":
    main()
