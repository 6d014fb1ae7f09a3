"""Scripts unchanged: what they are given, what becomes of what they print, and how each way to end is recorded."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.engine import leases
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import (
    InvalidDefinition,
    InvalidInput,
    LedgerUnavailable,
    NoGo,
    ScriptFailed,
    SecretUnreadable,
    UnknownName,
)
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job, Policy
from opendataflow_dagster.model.paths import path_part
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.throttle import pause, resume, throttle
from opendataflow_dagster.scripts.environment import provision
from opendataflow_dagster.scripts.program import Limits, log_path
from opendataflow_dagster.scripts.runner import run_next
from opendataflow_dagster.secrets.cipher import encrypt, encrypt_as_upstream
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, key
from tests.scripts import Shop

PASSPHRASE = "of the tests"


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def shop(flow: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("ODF_PASSPHRASE", PASSPHRASE)
    return Shop(flow=flow, folder=tmp_path)


def seen_by(shop: Shop, script: str = "env -0 > environment") -> dict[str, str]:
    """The environment of the script, read back from the script itself."""
    path = shop.folder / "environment"
    report = shop.run(shop.script(script.replace("environment", str(path))))
    assert report.exit_code == 0, shop.outcomes
    return dict(item.split("=", 1) for item in path.read_bytes().decode().split("\0") if item)


# ---- what a script is given


def test_a_script_is_given_its_chunk_its_datasets_their_passwords_and_the_jobs_variables(shop: Shop) -> None:
    load = Job(
        jobid=JobId("load"),
        inputs=(Input(datasetid=DatasetId("bobin")),),
        outputs=(DatasetId("bobout"),),
        environment={"colour": "blue"},
    )
    shop.register(load)
    shop.flow.type(
        "update dataflow.dataset set hostname='db1', database='sales', schemaname='public', tablename='orders',"
        " username='etl', encryptedpass=%s where datasetid='bobin'",
        encrypted := encrypt_as_upstream(PASSPHRASE, "mysecret"),
    )
    shop.flow.announce("bobin/2024-01-01")
    seen = seen_by(shop)
    assert {name: value for name, value in seen.items() if name.startswith(("bob", "dataid", "colour"))} == {
        "dataid": "2024-01-01",
        "bobin_datasetid": "bobin",
        "bobin_hostname": "db1",
        "bobin_database": "sales",
        "bobin_schemaname": "public",
        "bobin_tablename": "orders",
        "bobin_username": "etl",
        "bobin_encryptedpass": encrypted,
        "bobin_password": "mysecret",
        "bobin_itemtype": "IN",
        "bobout_datasetid": "bobout",
        "bobout_itemtype": "OUT",
        "colour": "blue",
    }


def test_a_stale_dataid_is_replaced_a_null_unsets_and_secrets_of_ours_are_not_inherited(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.register(Job(jobid=JobId("load"), outputs=(DatasetId("raw"),), environment={"mode": "x", "gone": "x"}))
    shop.flow.type("update dataflow.job set itemvalue = null where itemtype = 'gone'")
    for name in ("dataid", "raw_hostname", "raw_password", "gone", "kept"):
        monkeypatch.setenv(name, "stale")
    for name in ("PASSKEY", "passkey", "ODF_PASSPHRASE_FILE", "ODF_PASSPHRASE_COMMAND", "ODF_NEW_PASSPHRASE"):
        monkeypatch.setenv(name, "secret")
    for name in ("ODF_WEBHOOK_URL", "ODF_DAGSTER_URL"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("ODF_DATABASE_URL", shop.flow.url)
    seen = seen_by(shop)
    assert (seen["dataid"], seen["mode"], seen["kept"]) == ("1", "x", "stale")
    assert not {"raw_hostname", "raw_password", "gone"} & set(seen)
    assert "secret" not in seen.values()
    assert PASSPHRASE not in seen.values()
    assert shop.flow.url not in seen.values()


HOSTILE = """'"`touch owned`$(touch owned);&|<>*?[]{}()!#~\\ \u00e9\u96ea %s $HOME ../../owned"""


def test_hostile_names_values_and_passwords_arrive_exactly_and_reach_no_shell_and_no_other_folder(shop: Shop) -> None:
    name = f"raw {HOSTILE}"
    password = f"{HOSTILE}\n\t\r\x01 second line\n"
    load = Job(jobid=JobId("load"), outputs=(DatasetId(name),), environment={"note": f"{HOSTILE}\nline"})
    shop.register(load, dataids="")
    shop.flow.plan(load, [f"../../{HOSTILE}"])
    shop.flow.type(
        "update dataflow.dataset set hostname=%s, encryptedpass=%s", HOSTILE, encrypt(PASSPHRASE, password, name)
    )
    seen = seen_by(shop, "env -0 > environment; echo said; exit 0")
    prefix = "raw_" + "".join(
        character if character.isascii() and (character.isalnum() or character == "_") else "_" for character in HOSTILE
    )
    assert seen["dataid"] == f"../../{HOSTILE}"
    assert seen["note"] == f"{HOSTILE}\nline"
    assert seen[f"{prefix}_datasetid"] == name
    assert seen[f"{prefix}_hostname"] == HOSTILE
    assert seen[f"{prefix}_password"] == password
    (outcome,) = shop.outcomes
    assert outcome.log is not None
    assert outcome.log.read_text() == "said\n"
    assert outcome.log.resolve().is_relative_to(shop.home / "scripts" / "load")
    assert not list(shop.folder.rglob("owned"))


@pytest.mark.parametrize("name", ["..", ".", "../x", "/etc/passwd", "a/b", "~", ".hidden", "\u96ea" * 160, "a" * 500])
def test_a_dataid_as_part_of_a_path_never_leaves_its_folder(shop: Shop, name: str) -> None:
    shop.register("load: -> raw", dataids="")
    shop.flow.plan(Job(jobid=JobId("load"), outputs=(DatasetId("raw"),)), [name])
    (taken,) = claim_next(shop.flow.ledger, "load")
    path = log_path(shop.folder, taken)
    path.parent.mkdir(parents=True)
    assert path.parent.resolve().parent == shop.folder.resolve() / "load"
    assert path_part(name) not in ("", ".", "..")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "insert into dataflow.job values ('load', 'raw.hostname', null, 'x', now())",
            "item raw.hostname and DataSet raw",
        ),
        ("insert into dataflow.job values ('load', 'dataid', null, 'x', now())", "item dataid and the chunk"),
        (
            "insert into dataflow.job values ('load', 'BASH_ENV', null, '$(id)', now())",
            "which a shell or the loader executes",
        ),
        ("update dataflow.dataset set hostname = repeat('x', 1000000)", "1,000,014 bytes"),
        (
            "insert into dataflow.job select 'load', 'v' || n, null, repeat('x', 100000), now()"
            "  from generate_series(1, 100) n",
            "this machine allows",
        ),
    ],
)
def test_what_an_environment_cannot_hold_is_an_error_before_the_chunk_is_claimed(
    shop: Shop, sql: str, said: str
) -> None:
    shop.register("load: -> raw")
    shop.flow.type(sql)
    with pytest.raises(InvalidDefinition, match=said):
        shop.run(shop.script(f"touch {shop.folder}/ran"))
    assert (shop.flow.chunk("raw/1").status, shop.flow.chunk("raw/1").attempt) == ("PENDING", 0)
    assert not (shop.folder / "ran").exists()


def test_a_password_with_a_nul_is_an_error_that_does_not_show_it(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.dataset set encryptedpass=%s", encrypt(PASSPHRASE, "hush\0hush", "raw"))
    with pytest.raises(InvalidDefinition) as refused:
        shop.run(shop.script("true"))
    assert "the value of raw_password from DataSet raw contains a NUL character" in str(refused.value)
    assert "hush" not in str(refused.value)
    assert shop.flow.status("raw/1") == "PENDING"


def test_two_datasets_whose_names_are_one_in_a_shell_are_an_error(shop: Shop) -> None:
    shop.register("load: -> raw-data, raw.data")
    with pytest.raises(InvalidDefinition, match=r"DataSet raw\.data and DataSet raw-data both set"):
        provision(shop.flow.ledger, "load")


def test_without_the_right_passphrase_nothing_is_claimed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.dataset set encryptedpass=%s", encrypt("another", "hush", "raw"))
    with pytest.raises(SecretUnreadable, match="of DataSet raw cannot be decrypted: the passphrase is wrong"):
        shop.run(shop.script("true"))
    monkeypatch.delenv("ODF_PASSPHRASE")
    with pytest.raises(SecretUnreadable, match="set ODF_PASSPHRASE"):
        shop.run(shop.script("true"))
    assert shop.flow.status("raw/1") == "PENDING"


# ---- what it prints


def test_output_is_kept_in_a_file_for_the_owner_alone_and_a_failure_names_it(shop: Shop) -> None:
    shop.register("load: -> raw")
    report = shop.run(shop.script("echo out; echo first >&2; echo 'mount: /data is gone' >&2; exit 3"))
    assert report.exit_code == ScriptFailed.exit_code
    (outcome,) = shop.outcomes
    assert (outcome.result, outcome.exit_code) == ("failed", 3)
    assert outcome.log is not None
    assert sorted(outcome.log.read_text().splitlines()) == ["first", "mount: /data is gone", "out"]
    assert stat.S_IMODE(outcome.log.stat().st_mode) == 0o600
    assert sorted(shop.shown.decode().splitlines()) == sorted(outcome.log.read_text().splitlines())
    chunk = shop.flow.chunk("raw/1")
    assert (chunk.status, chunk.reason) == ("FAILED", f"exit code 3: mount: /data is gone (log: {outcome.log})")


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_logs_are_private_whatever_the_umask_and_whatever_was_there_before(shop: Shop, umask: int) -> None:
    shop.register("load: -> raw")
    (shop.home / "scripts" / "load").mkdir(parents=True)
    (shop.home / "scripts" / "load").chmod(0o777)
    script, before = shop.script("echo out"), os.umask(umask)
    try:
        shop.run(script)
    finally:
        os.umask(before)
    log = shop.outcomes[0].log
    assert log is not None
    assert [stat.S_IMODE(path.stat().st_mode) for path in (log, log.parent, log.parent.parent)] == [0o600, 0o700, 0o700]
    assert log.read_text() == "out\n"


@pytest.mark.parametrize("place", ["load", "load/1", "load/1/1-{}.log"])
@pytest.mark.parametrize("target", ["a folder", "a file", "nothing"])
def test_a_log_is_never_written_through_a_symlink(shop: Shop, place: str, target: str) -> None:
    shop.register("load: -> raw")
    taken = shop.flow.psql.execute("select nextval('dataflow.claim_id')").fetchone()
    assert taken is not None
    outside = shop.folder / "outside"
    if target == "a folder":
        outside.mkdir()
    elif target == "a file":
        outside.write_text("precious")
    link = shop.home / "scripts" / place.format(taken[0] + 1)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    assert shop.run(shop.script("echo out")).exit_code == 0
    if target == "a folder":
        assert list(outside.iterdir()) == []
    elif target == "a file":
        assert outside.read_text() == "precious"
    else:
        assert not outside.exists()
    assert shop.flow.status("raw/1") == "READY"


def test_a_pipe_or_a_hard_link_in_the_place_of_a_log_is_replaced(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    precious = shop.folder / "precious"
    precious.write_text("precious")
    taken = shop.flow.psql.execute("select nextval('dataflow.claim_id')").fetchone()
    assert taken is not None
    for dataid, number in (("1", taken[0] + 1), ("2", taken[0] + 2)):
        place = shop.home / "scripts" / "load" / dataid / f"1-{number}.log"
        place.parent.mkdir(parents=True)
        if dataid == "1":
            os.mkfifo(place)
        else:
            place.hardlink_to(precious)
    shop.run(shop.script("echo out"), everything=True)
    assert [outcome.log.read_text() for outcome in shop.outcomes if outcome.log] == ["out\n", "out\n"]
    assert precious.read_text() == "precious"


def test_each_attempt_has_a_file_of_its_own(shop: Shop) -> None:
    shop.register("load: -> raw")
    script = shop.script("echo attempt; exit 1")
    for _ in range(2):
        shop.run_chunk(script, "1")
    first, second = (outcome.log for outcome in shop.outcomes)
    assert first != second
    assert first is not None
    assert first.exists()


def test_output_is_shown_while_the_script_runs(shop: Shop) -> None:
    """It waits for us to have seen its first line."""
    shop.register("load: -> raw")
    gate = shop.folder / "gate"
    os.mkfifo(gate)

    def open_gate(data: bytes) -> None:
        if b"begun" in data:
            gate.write_bytes(b"go")

    script = shop.script(f"echo begun; cat {gate}")
    run_next(shop.flow.ledger, shop.order(script, on_output=open_gate))
    assert shop.shown == b"begun\ngo"


def test_the_scripts_passwords_are_masked_in_what_is_kept_shown_and_stored(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.dataset set encryptedpass=%s", encrypt(PASSPHRASE, "s3cr3t\ntail", "raw"))
    shop.run(
        shop.script(
            'printf "a s3c"; sleep 0.05; printf "r3t\ntail b s3c"; sleep 0.05; printf "x"\n'
            'echo "$raw_password" >&2; exit 1'
        )
    )
    (outcome,) = shop.outcomes
    assert outcome.log is not None
    for text in (outcome.log.read_bytes(), bytes(shop.shown), (shop.flow.chunk("raw/1").reason or "").encode()):
        assert b"s3cr3t" not in text
    assert b"a *** b s3cx" in outcome.log.read_bytes().replace(b"***\n", b"")


def test_a_disk_that_takes_no_log_does_not_fail_the_work(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.home.write_text("a file where the folder should be")
    assert shop.run(shop.script("echo hello")).exit_code == 0
    assert b"the output is no longer logged" in shop.shown
    assert shop.flow.status("raw/1") == "READY"


def test_a_hundred_megabytes_are_kept_whole_with_little_memory(shop: Shop) -> None:
    shop.register("load: -> raw")
    script = shop.script("head -c 100000000 /dev/zero")
    with shop.start("run", script, ODF_PASSPHRASE=PASSPHRASE) as process:
        assert process.stdout is not None
        shown = peak = 0
        while data := os.read(process.stdout.fileno(), 1 << 20):
            shown += len(data)
            peak = max(peak, peak_kilobytes(process.pid))
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    (log,) = (shop.home / "scripts").rglob("*.log")
    assert (shown, log.stat().st_size) == (100_000_000, 100_000_000)
    assert 10_000 < peak < 100_000


def peak_kilobytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0


# ---- how it ends


def test_exit_code_0_publishes_and_consumers_run_on_it(shop: Shop) -> None:
    shop.register("load: -> raw", "clean: raw -> tidy", dataids="9 10")
    assert shop.run(shop.script("true"), everything=True).finished == 2
    assert [outcome.claim.dataid for outcome in shop.outcomes] == ["9", "10"]
    assert shop.run(shop.script("true", "clean.sh"), everything=True).finished == 2
    assert {shop.flow.status(f"tidy/{dataid}") for dataid in ("9", "10")} == {"READY"}
    assert shop.flow.chunk("raw/9").version == 1
    assert shop.flow.in_rows() == []


def test_arguments_reach_the_script_as_they_are(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.run(shop.script('printf "%s|" "$@"'), "a b", "$(touch owned)", "", "--all")
    assert shop.shown == b"a b|$(touch owned)||--all|"


@pytest.mark.parametrize("text", ["echo no first line: $dataid", "#!/bin/sh\necho no first line: $dataid"])
def test_a_script_runs_with_and_without_a_first_line_that_names_its_shell(shop: Shop, text: str) -> None:
    shop.register("load: -> raw")
    path = shop.script("#!")
    path.write_text(text)
    assert shop.run(path).exit_code == 0
    assert shop.shown == b"no first line: 1\n"


def test_a_script_that_cannot_be_started_gives_its_chunk_back(shop: Shop) -> None:
    shop.register("load: -> raw")
    with pytest.raises(ScriptFailed, match=r"load\.sh cannot be started"):
        shop.run(shop.script("#!/no/such/shell\n"))
    assert shop.flow.status("raw/1") == "RESUBMIT"


def test_a_script_that_is_killed_has_failed(shop: Shop) -> None:
    shop.register("load: -> raw")
    assert shop.run(shop.script("echo busy; kill -9 $$")).exit_code == ScriptFailed.exit_code
    assert (shop.flow.chunk("raw/1").reason or "").startswith("killed by SIGKILL: busy (log: ")


def test_the_exit_code_of_the_script_is_the_law_also_after_a_failed_pipe(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    assert shop.run(shop.script("false | cat")).exit_code == 0
    assert shop.flow.status("raw/1") == "READY"
    assert shop.run(shop.script("set -o pipefail\nfalse | cat")).exit_code == ScriptFailed.exit_code
    assert shop.flow.status("raw/2") == "FAILED"


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.slow
def test_children_that_a_script_leaves_behind_end_with_it_also_if_they_ignore_sigterm(shop: Shop) -> None:
    shop.register("load: -> raw")
    pids = shop.folder / "pids"
    shop.run(
        shop.script(
            f"sleep 1000 >/dev/null 2>&1 & echo $! >> {pids}\n"
            f"(trap '' TERM; while :; do sleep 1; done) & echo $! >> {pids}"
        )
    )
    assert shop.flow.status("raw/1") == "READY"
    assert [is_alive(int(pid)) for pid in pids.read_text().split()] == [False, False]


def test_the_last_words_of_a_helper_are_waited_for(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.run(shop.script("exec > >(sleep 0.2; cat); echo late"))
    assert shop.shown == b"late\n"


def test_a_script_that_takes_too_long_and_ignores_sigterm_is_killed_after_the_grace(shop: Shop) -> None:
    shop.register("load: -> raw")
    order = shop.order(
        shop.script("trap '' TERM; echo stubborn; while :; do sleep 0.1; done"), limits=Limits(grace=0.3, timeout=0.3)
    )
    assert run_next(shop.flow.ledger, order).exit_code == ScriptFailed.exit_code
    assert (shop.flow.chunk("raw/1").reason or "").startswith("timed out after 0.3 s: stubborn")


@pytest.mark.slow
def test_the_lease_is_renewed_while_a_script_runs(shop: Shop) -> None:
    lease = timedelta(seconds=3)
    shop.register("load: -> raw", policy=Policy(lease=lease))
    renewed = shop.folder / "renewed"
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(shop.run, shop.script(f"until [ -e {renewed} ]; do sleep 0.05; done"))
        wait_for(lambda: shop.flow.chunk("raw/1").lease_until)
        first = shop.flow.chunk("raw/1").lease_until
        assert first is not None
        wait_for(lambda: (shop.flow.chunk("raw/1").lease_until or first) > first + lease)
        renewed.touch()
        assert run.result().exit_code == 0
    assert shop.flow.chunk("raw/1").version == 1


@pytest.mark.slow
def test_a_renewal_that_hangs_delays_neither_the_timeout_nor_the_end(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, over = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        hanging.set()
        over.wait(60)

    monkeypatch.setattr(leases, "renew_many", hang)
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=9)))
    order = shop.order(shop.script("sleep 1000"), limits=Limits(grace=0.3, timeout=3.5))
    try:
        assert run_next(shop.flow.ledger, order).failed == 1
        assert hanging.is_set()
        assert not over.is_set()
    finally:
        over.set()
    assert (shop.flow.chunk("raw/1").reason or "").startswith("timed out after 3.5 s")


def test_a_resubmit_typed_meanwhile_ends_the_script_and_nothing_of_it_is_published(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=1)))

    def resubmit(_: bytes) -> None:
        shop.flow.type("update dataflow.datastatus set status = 'RESUBMIT'")

    order = shop.order(shop.script("echo begun; sleep 1000"), on_output=resubmit)
    report = run_next(shop.flow.ledger, order)
    assert (report.exit_code, report.lost) == (129, 1)
    assert shop.flow.status("raw/1") == "RESUBMIT"
    assert shop.run(shop.script("true")).exit_code == 0
    assert shop.flow.chunk("raw/1").version == 1


def test_a_ledger_that_is_away_for_a_moment_costs_no_work(shop: Shop) -> None:
    shop.register("load: -> raw")

    def cut(_: bytes) -> None:
        shop.flow.type("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'opendataflow'")

    order = shop.order(shop.script("echo begun"), on_output=cut)
    assert run_next(shop.flow.ledger, order).exit_code == 0
    assert shop.flow.status("raw/1") == "READY"


def test_a_ledger_that_cannot_be_reached_is_a_failure_of_its_own(shop: Shop) -> None:
    nowhere = "postgresql://odf:s3cret@127.0.0.1:1/nowhere?connect_timeout=1"
    with Ledger(nowhere, patience=timedelta(seconds=0.1)) as ledger, pytest.raises(LedgerUnavailable) as unreachable:
        run_next(ledger, shop.order(shop.script("true")))
    assert unreachable.value.exit_code == 132
    assert "s3cret" not in str(unreachable.value)


def test_an_operator_who_may_not_change_the_registry_runs_scripts(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    shop.flow.type("create role night_shift login password 'secret' in role dataflow_operator")
    try:
        login = make_conninfo("", **{**conninfo_to_dict(shop.flow.url), "user": "night_shift", "password": "secret"})
        with Ledger(login) as ledger:
            assert run_next(ledger, shop.order(shop.script("test $dataid = 1")), everything=True).finished == 1
    finally:
        shop.flow.type("drop role night_shift")
    assert [shop.flow.status(f"raw/{dataid}") for dataid in "12"] == ["READY", "FAILED"]


# ---- a DataSet that has a place


def test_a_script_writes_into_the_place_of_its_claim_and_its_files_are_listed(shop: Shop) -> None:
    (load,) = shop.flow.register("load: -> raw")
    shop.flow.plan(load, ["a/b"])
    assert shop.run(shop.script('mkdir -p "$raw_location/part"; echo hello > "$raw_location/part/1"')).exit_code == 0
    with shop.flow.ledger.statement() as statement:
        manifest = chunks.current_manifest(statement, key("raw/a/b"))
    assert manifest is not None
    assert [(file.path, file.size) for file in manifest.files] == [("part/1", 6)]
    assert Path(manifest.location).is_relative_to(shop.flow.root / "raw" / "a%2Fb")
    first = manifest.location
    assert shop.run_chunk(shop.script("exit 1"), "a/b").exit_code == ScriptFailed.exit_code
    assert (Path(first) / "part" / "1").read_text() == "hello\n", "the version before is as it was"


def test_a_consumer_finds_its_input_where_it_was_published(shop: Shop) -> None:
    load, _ = shop.flow.register("load: -> raw", "clean: raw -> tidy", tidy=Dataset(datasetid=DatasetId("tidy")))
    shop.flow.plan(load, ["1"])
    shop.run(shop.script('mkdir -p "$raw_location"; echo hello > "$raw_location/part"'))
    assert shop.run(shop.script('cat "$raw_location/part"', "clean.sh")).exit_code == 0
    assert shop.shown == b"hello\n"


def test_a_script_that_leaves_nothing_in_its_place_has_failed(shop: Shop) -> None:
    (load,) = shop.flow.register("load: -> raw")
    shop.flow.plan(load, ["1"])
    assert shop.run(shop.script("true")).exit_code == ScriptFailed.exit_code
    assert "wrote nothing for raw to" in (shop.flow.chunk("raw/1").reason or "")


# ---- which chunk, and what a scheduler is told


def test_nothing_ready_is_1_and_says_what_waits(shop: Shop) -> None:
    shop.register("clean: raw -> tidy")
    report = shop.run(shop.script("true", "clean.sh"))
    assert report.exit_code == 1
    assert report.nothing is not None
    assert report.nothing.sentence == "no chunk of job clean is ready; see odf why clean"
    assert shop.run(shop.script("true", "clean.sh"), everything=True).exit_code == 1
    assert shop.flow.psql.execute("select from dataflow.job_run").rowcount == 0, "an idle look is no run"


def test_attempts_exceeded_is_2_and_a_resubmit_makes_it_0(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(max_attempts=2, retry_on="exit code"))
    failing = shop.script("exit 1")
    assert shop.run(failing, everything=True).failed == 2, "the policy's retry is part of it"
    report = shop.run(failing, everything=True)
    assert report.exit_code == 2
    assert report.nothing is not None
    assert "1 exhausted their retries, e.g. 1; see odf why load" in report.nothing.sentence
    shop.flow.type("update dataflow.datastatus set status = 'RESUBMIT'")
    assert shop.run(shop.script("true")).exit_code == 0


def test_a_paused_job_is_3_and_a_full_one_is_1_and_neither_is_a_run(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    pause(shop.flow.ledger, "load", by="ada", reason="disk is being changed")
    report = shop.run(shop.script("true"), everything=True)
    assert report.exit_code == 3
    assert report.nothing is not None
    assert "disk is being changed); resume it with: odf resume load" in report.nothing.sentence
    assert shop.run_chunk(shop.script("true"), "1").exit_code == 3
    shop.flow.type("delete from dataflow.job_run")
    resume(shop.flow.ledger, "load", by="ada")
    throttle(shop.flow.ledger, "load", 1, by="ada")
    claim_next(shop.flow.ledger, "load")
    report = shop.run(shop.script("true"))
    assert report.exit_code == 1
    assert report.nothing is not None
    assert report.nothing.sentence == "job load is at its concurrency limit (1 running); retry later"
    assert shop.flow.psql.execute("select from dataflow.job_run").rowcount == 0


def test_a_crash_that_holds_the_only_place_is_healed_by_the_next_run(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(microseconds=1)), dataids="1 2")
    throttle(shop.flow.ledger, "load", 1, by="ada")
    claim_next(shop.flow.ledger, "load")
    shop.flow.type("update dataflow.job_policy set lease = '1 minute'")
    assert shop.run(shop.script("true"), everything=True).finished == 2


def test_a_forced_chunk_runs_unasked_and_the_history_says_so(shop: Shop) -> None:
    shop.register("clean: raw -> tidy")
    report = shop.run_chunk(shop.script("echo $dataid", "clean.sh"), "test-1", forced=True)
    assert (report.exit_code, bytes(shop.shown)) == (0, b"test-1\n")
    with shop.flow.ledger.statement() as statement:
        history = chunks.history(statement, key("tidy/test-1"))
    assert [event.new_status for event in history] == ["RUNNING", "READY"]
    assert history[0].reason == "forced by test"


def test_an_unknown_job_is_wrong_usage(shop: Shop) -> None:
    with pytest.raises(UnknownName, match="job load is not registered"):
        shop.run(shop.script("true"))


def test_all_goes_past_a_failed_chunk_and_ends_as_a_failure(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2 3")
    report = shop.run(shop.script("test $dataid != 2"), everything=True)
    assert (report.finished, report.failed, report.exit_code) == (2, 1, ScriptFailed.exit_code)
    assert [shop.flow.status(f"raw/{dataid}") for dataid in "123"] == ["READY", "FAILED", "READY"]
    ended = shop.flow.psql.execute("select outcome from dataflow.job_run").fetchall()
    assert ended == [("FAILED",)]


def test_parallel_runs_so_many_at_a_time(shop: Shop) -> None:
    """Each waits until all three have begun."""
    shop.register("load: -> raw", dataids="1 2 3 4 5 6")
    script = shop.script(
        f"cd {shop.folder}; touch begun-$dataid\n"
        'until [ "$(ls begun-* | wc -l)" -ge 3 ]; do sleep 0.02; done; echo $dataid'
    )
    report = shop.run(script, everything=True, parallel=3)
    assert (report.finished, report.exit_code) == (6, 0)
    assert {shop.flow.status(f"raw/{dataid}") for dataid in "123456"} == {"READY"}


def test_a_chunk_by_name_is_an_act_of_a_person_who_resubmits_what_is_over(shop: Shop) -> None:
    shop.register("load: -> raw", dataids="1 2")
    assert shop.run_chunk(shop.script("exit 1"), "2").failed == 1
    assert shop.run_chunk(shop.script("true"), "2").finished == 1
    assert shop.run_chunk(shop.script("true"), "2").finished == 1
    assert (shop.flow.chunk("raw/2").version, shop.flow.status("raw/1")) == (2, "PENDING")
    with shop.flow.ledger.statement() as statement:
        history = chunks.history(statement, key("raw/2"))
    asked = [event.reason for event in history if event.new_status == "RESUBMIT" and event.actor == "test"]
    assert asked == ["odf run --dataid", "odf run --dataid"]


def test_a_chunk_by_name_that_may_not_run_is_refused_with_its_reason(shop: Shop) -> None:
    shop.register("load: -> raw")
    shop.flow.type("update dataflow.datastatus set status = 'HOLD'")
    with pytest.raises(NoGo, match="unhold it"):
        shop.run_chunk(shop.script("true"), "1")
    with pytest.raises(InvalidInput):
        shop.run_chunk(shop.script("true"), "a\nb")


def test_a_crashed_run_is_healed_by_the_next_one_alone(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=1)))
    script = shop.script(f"touch {shop.folder}/begun; sleep 1000")
    with shop.start("run", script, ODF_PASSPHRASE=PASSPHRASE) as process:
        wait_for(lambda: (shop.folder / "begun").exists())
        group = live_group(shop)
        process.kill()
    os.killpg(group, signal.SIGKILL)
    wait_for(lambda: shop.run(shop.script("true")).exit_code == 0)
    assert shop.flow.chunk("raw/1").attempt == 2


def live_group(shop: Shop) -> int:
    """The script's process group, by its environment's shell."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(shop.folder / "load.sh").encode() in path.read_bytes().split(b"\0")[1:2]:
                return int(path.parent.name)
        except OSError:
            continue
    raise AssertionError("the script does not run")


def wait_for(condition: object, seconds: float = PATIENCE_SECONDS) -> None:
    assert callable(condition)
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
