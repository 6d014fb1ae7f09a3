"""Jobs with a form in Dagster's UI, by which a person changes chunks through the verbs that `odf` uses.

Dagster's open source web server knows no persons, so each form asks for a name. The history records it with the run
and the login of the database.

Dagster reads the annotations of these functions, so this module does not postpone them.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

import dagster as dg
from pydantic import Field

from ..engine.connections import Ledger
from ..insight.selection import Selection, failed_keys, select_failed, select_keys
from ..insight.story import previous_version
from ..model.errors import InvalidInput, OpenDataFlowError
from ..model.ids import ChunkKey, data_id, dataset_id, summary
from ..protocol.hold import hold, unhold
from ..protocol.resubmit import resubmit
from ..protocol.rollback import rollback
from .resources import LedgerResource
from .run_config import labels

_MOST_CHUNKS: Final = 20


class Form(dg.Config):
    #: Not required by the schema, because then the Launchpad would leave it out of the form.
    person: str = Field(default="", description="Your name. The history shows it; Dagster does not know who you are.")
    reason: str = Field(default="", description="Why. The history shows it.")
    dry_run: bool = Field(default=False, description="Only say what would happen; change nothing.")


class ChunksForm(Form):
    dataset: str = Field(default="", description="The DataSet.")
    dataids: list[str] = Field(
        default=[], description="Its chunks: dataids, and ranges such as 2024-01-01..2024-01-31."
    )
    most_chunks: int = Field(default=_MOST_CHUNKS, description="Refuse to change more chunks than this.")


class ResubmitForm(ChunksForm):
    failed: bool = Field(
        default=False, description="Instead of dataids: all FAILED chunks, of the DataSet if you name one."
    )
    downstream: bool = Field(default=False, description="Also everything that was made from them.")


class RollbackForm(Form):
    dataset: str = Field(default="", description="The DataSet.")
    dataid: str = Field(default="", description="The chunk.")
    version: int = Field(default=0, description="The version to go back to. 0: the one before the current.")


_AnyForm = TypeVar("_AnyForm", bound=Form)
#: What an act says of the chunks that it changed.
Said: TypeAlias = tuple[str, Sequence[ChunkKey]]


def operator_jobs(resource: LedgerResource) -> list[dg.JobDefinition]:
    """`odf_resubmit`, `odf_hold`, `odf_unhold` and `odf_rollback`."""
    return [
        _job("resubmit", ResubmitForm, _resubmit, resource),
        _job("hold", ChunksForm, _hold, resource),
        _job("unhold", ChunksForm, _unhold, resource),
        _job("rollback", RollbackForm, _rollback, resource),
    ]


def _job(
    act: str, form: type[_AnyForm], perform: Callable[[Ledger, _AnyForm, str], Said], resource: LedgerResource
) -> dg.JobDefinition:
    # The ledger is no resource of the operation: the Launchpad would put its settings into the form.
    @dg.op(name=act, config_schema=form.to_fields_dict())
    def operation(context: dg.OpExecutionContext) -> None:
        filled = form(**context.op_config)
        try:
            sentence, keys = _performed(resource.ledger, filled, perform, context.run_id)
        except OpenDataFlowError as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        context.log.info(sentence)
        context.add_output_metadata({"said": sentence, "chunks": "\n".join(map(str, keys))})
        tags = {"person": filled.person.strip(), **({"dry_run": "true"} if filled.dry_run else {})}
        context.instance.add_run_tags(context.run_id, {**tags, **labels([key.dataid for key in keys])})

    return dg.GraphDefinition(name=f"odf_{act}", node_defs=[operation], description=perform.__doc__).to_job()


def _performed(store: Ledger, form: _AnyForm, perform: Callable[[Ledger, _AnyForm, str], Said], run_id: str) -> Said:
    person = form.person.strip()
    if not person:
        raise InvalidInput("person is empty; write your name, which the history shows")
    by = f"{person}, Dagster run {run_id}"
    if not form.dry_run:
        return perform(store, form, by)
    with store.rehearsing() as rehearsal:
        sentence, keys = perform(rehearsal, form, by)
    return f"Dry run, nothing was changed. Would report: {sentence}", keys


def _resubmit(ledger: Ledger, form: ResubmitForm, by: str) -> Said:
    """Run chunks again: some by name, a range, or all that failed. Producers run before consumers."""
    keys, requested = _to_resubmit(ledger, form)
    affected: Sequence[ChunkKey] = keys
    if form.downstream and not form.dry_run:
        with ledger.rehearsing() as rehearsal:
            affected = resubmit(rehearsal, keys, by=by, with_downstream=True).chunks
    _refuse_many(affected, form, "resubmit")
    done = resubmit(ledger, keys, by=by, reason=form.reason, with_downstream=form.downstream, requested=requested)
    return str(done), done.chunks


def _hold(ledger: Ledger, form: ChunksForm, by: str) -> Said:
    """Put chunks on hold: nobody runs or reads them until they are unheld. A running chunk loses its claim."""
    keys = _named(ledger, form)
    _refuse_many(keys, form, "hold")
    held = hold(ledger, keys, by=by, reason=form.reason)
    return (f"Held {summary(held)}." if held else f"No change: {summary(keys)} was already on hold."), held


def _unhold(ledger: Ledger, form: ChunksForm, by: str) -> Said:
    """Release chunks from hold. Each gets its previous status back; one that was running is resubmitted."""
    keys = _named(ledger, form)
    _refuse_many(keys, form, "unhold")
    released = unhold(ledger, keys, by=by, reason=form.reason)
    return (f"Released {summary(released)}." if released else f"No change: {summary(keys)} was not on hold."), released


def _rollback(ledger: Ledger, form: RollbackForm, by: str) -> Said:
    """Make an earlier version of a chunk the current one. No data is copied; chunks made from it become stale."""
    key = ChunkKey(datasetid=dataset_id(form.dataset), dataid=data_id(form.dataid))
    target = form.version or previous_version(ledger, key)
    version = rollback(ledger, key, target, by=by, reason=form.reason)
    return f"{key} is at version {version}, which has the files of version {target}.", [key]


def _to_resubmit(ledger: Ledger, form: ResubmitForm) -> tuple[list[ChunkKey], datetime | None]:
    if not form.failed:
        return _named(ledger, form), None
    if form.dataids:
        raise InvalidInput("failed: true cannot be combined with dataids; remove one of them")
    return failed_keys(select_failed(ledger, datasetid=form.dataset or None))


def _named(ledger: Ledger, form: ChunksForm) -> list[ChunkKey]:
    if not form.dataset or not form.dataids:
        raise InvalidInput("no chunks selected; write a dataset, and its dataids or ranges such as [2024-01-01..]")
    return select_keys(ledger, Selection(datasetid=form.dataset, words=form.dataids))


def _refuse_many(keys: Sequence[ChunkKey], form: ChunksForm, verb: str) -> None:
    if len(keys) > form.most_chunks and not form.dry_run:
        raise InvalidInput(
            f"this would {verb} {summary(keys)}; check with dry_run: true, then set most_chunks: {len(keys)}"
        )
