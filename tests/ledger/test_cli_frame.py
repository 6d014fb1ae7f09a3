"""What holds for `odf` commands that use the ledger."""

from __future__ import annotations

import os
import subprocess
import sys

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.protocol.hold import hold
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.factories import Flow, key


def test_a_rehearsal_reports_what_verbs_do_and_changes_nothing(flow: Flow) -> None:
    flow.register("load: -> raw")
    flow.produce("load", "1")
    with Ledger(flow.url, rehearsal=True) as rehearsal:
        assert resubmit(rehearsal, [key("raw/1")], by="ada").chunks == (key("raw/1"),)
        assert hold(rehearsal, [key("raw/1")], by="ada") == [key("raw/1")]
        assert hold(rehearsal, [key("raw/1")], by="ada") == [], "it sees what it did before"
        with rehearsal.statement() as statement:
            assert statement.run("resume", jobid="nobody", reason=None) == 0
    assert flow.status("raw/1") == "READY"
    assert flow.psql.execute("select from dataflow.chunk_event where actor = 'ada'").rowcount == 0


def test_a_closed_pipe_exits_with_128(flow: Flow) -> None:
    """Neither yes (0) nor no (1): the reader did not see all output."""
    flow.type(
        "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)"
        " select 'big', 'someone', n::text, 'OUT', 'READY' from generate_series(1, 10000) n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()", "chunks", "big", "--list"],
        env={**os.environ, "ODF_DATABASE_URL": flow.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("dataid")
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 128
