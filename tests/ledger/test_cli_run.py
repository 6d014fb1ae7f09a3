"""`odf run` and `odf force` as separate processes: output, signals and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from opendataflow_dagster.insight.runs import find_runs
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.throttle import pause
from opendataflow_dagster.secrets.cipher import encrypt
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow
from tests.ledger.test_scripts import is_alive, live_group, wait_for
from tests.scripts import ODF, Shop

# Every test starts several processes.
pytestmark = pytest.mark.slow


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def shop(flow: Flow, tmp_path: Path) -> Shop:
    return Shop(flow=flow, folder=tmp_path)


def test_run_passes_on_both_streams_and_reports_the_outcome(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.script('echo for $dataid $1; echo careful >&2; cat; test -z "$ODF_DATABASE_URL"')
    done = shop.odf("run", "load.sh", "--verbose")
    assert (done.returncode, done.stdout) == (0, "for 1 --verbose\n")
    careful, ended = done.stderr.splitlines()
    assert careful == "careful"
    assert ended.startswith("odf: load/1 finished in ")


def test_with_json_stdout_has_only_json_with_every_chunk(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    script = shop.script("echo noise; test $dataid = 1")
    done = shop.odf("run", "--all", "--json", script)
    printed = json.loads(done.stdout)
    assert (printed["finished"], printed["failed"], printed["exit_code"], printed["nothing"]) == (
        1,
        1,
        done.returncode,
        None,
    )
    assert [(chunk["dataid"], chunk["result"], chunk["exit_code"]) for chunk in printed["chunks"]] == [
        ("1", "finished", 0),
        ("2", "failed", 1),
    ]
    assert Path(printed["chunks"][1]["log"]).read_text() == "noise\n"
    assert done.stderr.count("noise\n") == 2


def test_parallel_scripts_prefix_their_lines_with_the_dataid(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    done = shop.odf("run", "--all", "--parallel", "2", shop.script("echo one; printf two"))
    assert sorted(done.stdout.splitlines()) == ["1 | one", "1 | two", "2 | one", "2 | two"]


def test_run_takes_a_job_name_and_a_program_on_the_path(shop: Shop) -> None:
    shop.register("load: -> raw")
    done = shop.odf("run", "--job", "load", "printenv", "dataid")
    assert (done.returncode, done.stdout) == (0, "1\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run"], 64, "Missing argument 'SCRIPT'"),
        (["run", "nowhere.sh"], 64, "script nowhere.sh does not exist; pass its path"),
        (["run", "plain.sh"], 64, "is not executable; run: chmod +x"),
        (["run", "other.sh"], 64, "job other is not registered"),
        (["run", "--dataid", "1", "--all", "load.sh"], 64, "--dataid cannot be combined with --all or --parallel"),
        (["run", "--parallel", "0", "load.sh"], 64, "0 is not in the range"),
        (["force", "load.sh"], 64, "Missing option '--dataid'"),
        (["run", "load.sh"], 1, "no chunk of job load is ready; see odf why load"),
        (["run", "--dataid", "1", "load.sh"], 1, "raw/1 is HOLD"),
    ],
)
def test_a_script_that_cannot_run_is_a_one_line_error(shop: Shop, words: list[str], code: int, message: str) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.datastatus set status = 'HOLD'")
    for name in ("load.sh", "other.sh", "plain.sh"):
        shop.script("true", name)
    (shop.folder / "plain.sh").chmod(0o644)
    done = shop.odf(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_wrong_passphrase_exits_with_142_and_passkey_is_accepted(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.dataset set encryptedpass=%s", encrypt("right", "hush", "raw"))
    script = shop.script("true")
    done = shop.odf("run", script, ODF_PASSPHRASE="wrong-one")
    assert done.returncode == 142
    assert "wrong-one" not in done.stderr
    assert shop.odf("run", script, PASSKEY="right").returncode == 0


def test_a_dry_run_shows_variables_without_passwords(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.dataset set hostname='db1', encryptedpass=%s", encrypt("right", "hush", "raw"))
    script = shop.script(f"touch {shop.folder}/ran")
    for verb in (["run"], ["force", "--dataid", "1"]):
        done = shop.odf(*verb, "--dry-run", "--json", script, "-x", ODF_PASSPHRASE="right")
        printed = json.loads(done.stdout)
        assert (printed["command"], printed["dataids"], printed["exit_code"]) == ([str(script), "-x"], ["1"], 0)
        assert (printed["variables"]["raw_hostname"], printed["variables"]["raw_password"]) == ("db1", "***")
    done = shop.odf("run", "--dry-run", script, ODF_PASSPHRASE="right")
    assert "would run for 1" in done.stdout
    assert "hush" not in done.stdout
    assert shop.flow.status("raw/1") == "PENDING"
    assert not (shop.folder / "ran").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "load.sh"], 0, "./load.sh would run for 2"),
        (["run", "--all", "load.sh"], 0, "./load.sh would run for 2 chunks: 2, 3"),
        (["run", "--dataid", "1", "load.sh"], 1, "raw/1 is HOLD"),
        (["run", "--dataid", "4", "load.sh"], 0, "./load.sh would run for 4"),
        (["run", "--dataid", "9", "clean.sh"], 1, "raw/9 does not exist"),
        (["run", "clean.sh"], 1, "./clean.sh would not run: no chunk of job clean is ready"),
        (["run", "--dataid", "a\nb", "load.sh"], 64, "a\\nb"),
        (["run", "other.sh"], 3, "./other.sh would not run: job other is paused"),
        (["run", "--dataid", "1", "other.sh"], 3, "./other.sh would not run: job other is paused"),
        (["force", "--dataid", "", "load.sh"], 64, "dataid"),
        (["force", "--dataid", "1", "load.sh"], 0, "./load.sh would run for 1"),
    ],
)
def test_a_dry_run_reports_and_exits_like_the_real_run(shop: Shop, words: list[str], code: int, message: str) -> None:
    shop.register("load: -> raw", "clean: raw -> tidy", "other: -> more", dataids="1 2 3 4")
    shop.flow.type("update dataflow.datastatus set status = 'HOLD' where datasetid = 'raw' and dataid = '1'")
    shop.flow.type("update dataflow.datastatus set status = 'FAILED' where datasetid = 'raw' and dataid = '4'")
    pause(shop.flow.ledger, "other", by="test")
    for name in ("load.sh", "clean.sh", "other.sh"):
        shop.script("true", name)
    rehearsed = shop.odf(words[0], "--dry-run", *words[1:])
    assert message in " ".join((rehearsed.stdout + rehearsed.stderr).split())
    assert (rehearsed.returncode, shop.flow.status("raw/2")) == (code, "PENDING")
    assert shop.odf(*words).returncode == code


def test_a_refused_run_leaves_no_run_behind(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.datastatus set status = 'HOLD'")
    assert shop.odf("run", "--dataid", "1", shop.script("true")).returncode == 1
    assert find_runs(shop.flow.ledger) == []


def test_force_runs_a_chunk_without_its_input(shop: Shop) -> None:
    shop.register("clean: raw -> tidy")
    done = shop.odf("force", "--as", "ada", "--dataid", "x", "--json", shop.script("true", "clean.sh"))
    assert json.loads(done.stdout)["finished"] == 1
    (result,) = shop.flow.psql.execute(
        "select reason from dataflow.chunk_event where new_status = 'RUNNING'"
    ).fetchall()
    assert result == ("forced by ada",)


# ---- signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_script_and_children_and_fails_the_chunk(shop: Shop, number: signal.Signals) -> None:
    shop.register("load: -> raw", dataids="1 2")
    pid = shop.folder / "pid"
    script = shop.script(
        f"trap 'echo cleaned up; exit 9' {number.name}\nsleep 1000 & echo $! > {pid}\necho begun; wait; echo not here"
    )
    with shop.start("run", "--all", "--grace", "1", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (160 + number, "cleaned up\n")
    assert "load/1 failed: exit code 9" in err
    assert [shop.flow.status(f"raw/{dataid}") for dataid in "12"] == ["FAILED", "PENDING"]
    assert not is_alive(int(pid.read_text()))


def test_a_signal_ignored_by_the_caller_stays_ignored(shop: Shop) -> None:
    shop.register("load: -> raw")
    signalled = shop.folder / "signalled"
    script = shop.script(f"echo begun; until [ -e {signalled} ]; do sleep 0.05; done; echo end")
    command = ["nohup", *ODF, "run", str(script)]
    with subprocess.Popen(
        command, env=shop.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGHUP)
        signalled.touch()
        assert process.stdout.read() == "end\n"
    assert (process.returncode, shop.flow.status("raw/1")) == (0, "READY")


def test_a_script_that_ignores_signals_is_killed(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    script = shop.script("trap 'echo no' TERM; echo begun; while :; do sleep 0.1; done")
    for grace in ("0.2", "1000"):
        with shop.start("run", "--grace", grace, script) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "no\n"
            if grace == "1000":
                process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 175
        assert "killed by SIGKILL" in err


def test_a_run_that_outlives_its_lease_cannot_publish(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=1)))
    pid, claimed = shop.folder / "pid", shop.folder / "claimed"
    script = shop.script(f"echo $$ > {pid}; echo begun; until [ -e {claimed} ]; do sleep 0.05; done")
    with shop.start("run", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: bool(heal(shop.flow.ledger).resubmitted))
        (other,) = claim_next(shop.flow.ledger, "load")
        claimed.touch()
        wait_for(lambda: not is_alive(int(pid.read_text())))
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 129
    assert "load/1 lost: cannot publish load/1" in err
    assert shop.flow.chunk("raw/1").claim_id == other.claim_id
    assert shop.flow.chunk("raw/1").version is None


def test_a_slow_or_closed_reader_does_not_stop_the_script(shop: Shop) -> None:
    """While the reader is slow, the script waits and its lease is renewed."""
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=1)))
    script = shop.script("head -c 1000000 /dev/zero; echo end >&2")
    with shop.start("run", script) as process:
        wait_for(lambda: shop.flow.psql.execute(RENEWED).fetchone() == (True,))
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert "load/1 finished" in process.stderr.read()
    assert shop.flow.status("raw/1") == "READY"


def test_a_signal_ends_a_run_with_unread_output(shop: Shop) -> None:
    shop.register("load: -> raw")
    begun = shop.folder / "begun"
    with shop.start("run", "--grace", "1", shop.script(f"touch {begun}; head -c 1000000 /dev/zero")) as process:
        wait_for(begun.exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == 175
    assert shop.flow.status("raw/1") == "FAILED"


RENEWED = """
    select coalesce(max(lease_until) > (select max(at) from dataflow.chunk_event) + interval '2 seconds', false)
      from dataflow.datastatus"""


def test_after_kill_9_of_odf_its_script_cannot_publish(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=1)))
    with shop.start("run", shop.script("echo begun; sleep 1000")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        group = live_group(shop)
        process.kill()
    try:
        wait_for(lambda: shop.odf("run", "--job", "load", "true").returncode == 0)
        assert (shop.flow.chunk("raw/1").version, shop.flow.chunk("raw/1").attempt) == (1, 2)
    finally:
        os.killpg(group, signal.SIGKILL)
