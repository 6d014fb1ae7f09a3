"""`odf diff`: what differs between two versions of a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError

from . import output
from .arguments import dataset_argument
from .child_process import run_module
from .connection import open_ledger
from .options import exit_with_answer, json_option

if TYPE_CHECKING:
    from opendataflow_dagster.insight.story import Story
    from opendataflow_dagster.model.diff import DiffRequest, RowDiff, RowExample, Side, VersionDiff

    from .connection import Ledger

#: How many differences the story of a chunk has at most.
_MOST_DIFFS = 10


@click.command()
@dataset_argument
@click.argument("dataid")
@click.option("--from", "old", type=click.IntRange(min=1), help="The older version. Default: the one before --to.")
@click.option("--to", "new", type=click.IntRange(min=1), help="The newer version. Default: the current one.")
@click.option(
    "--staged",
    is_flag=True,
    help="Compare with what the newest attempt without a version wrote, as far as it is there.",
)
@click.option(
    "--key",
    metavar="COLUMN,...",
    help="Columns that identify a row; repeatable. Default: those of a unique(...) check.",
    multiple=True,
)
@click.option(
    "--examples", default=5, show_default=True, type=click.IntRange(min=0, max=1000), help="Examples of each kind."
)
@click.option("--exit-code", "with_exit_code", is_flag=True, help="Exit with 1 if the rows or columns differ.")
@json_option
def diff(
    datasetid: str,
    dataid: str,
    old: int | None,
    new: int | None,
    staged: bool,
    key: tuple[str, ...],
    examples: int,
    with_exit_code: bool,
    json_wanted: bool,
) -> None:
    """Compare two versions of a chunk: rows by key, columns, checks, inputs and code.

    Values are shown, cut to 60 characters. Versions of more than two million values are compared on Spark.

    \b
    Example:
      odf diff delays 2024-01-03
      odf diff delays 2024-01-03 --from 1 --to 3 --key carrier,flight
      odf diff delays 2024-01-03 --staged
      odf diff delays 2024-01-03 --exit-code --json
    """
    from opendataflow_dagster.model.diff import DiffRequest
    from opendataflow_dagster.model.ids import ChunkKey, data_id, dataset_id

    if staged and new is not None:
        raise InvalidInput("--staged and --to cannot be combined; give one of them")
    request = DiffRequest(
        chunk=ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid)),
        old=old,
        new=new,
        staged=staged,
        key=[name for names in key for name in names.split(",") if name],
        examples=examples,
    )
    with open_ledger() as ledger:
        compared = version_diff(ledger, request)
    if json_wanted:
        output.print_json({"equal": compared.equal, **output.jsonable(compared)})
    else:
        print_diff(compared)
    if with_exit_code:
        exit_with_answer(compared.equal)


def version_diff(ledger: Ledger, request: DiffRequest) -> VersionDiff:
    """Large versions are compared on Spark, in a process of its own."""
    from dataclasses import replace

    from opendataflow_dagster.insight.diff import compare_here, prepare

    comparison = prepare(ledger, request)
    if comparison.is_small:
        return replace(comparison.diff, rows=compare_here(comparison))
    # The same two, although a newer version may be published meanwhile.
    fixed = replace(request, old=comparison.diff.old.version, new=comparison.diff.new.version)
    return replace(comparison.diff, rows=_on_spark(fixed))


def story_diffs(ledger: Ledger, story: Story) -> list[tuple[DiffRequest, VersionDiff | None, str]]:
    """For a failed or stale chunk; where there is none, why."""
    from opendataflow_dagster.insight.diff import diffs_of

    compared: list[tuple[DiffRequest, VersionDiff | None, str]] = []
    for request in diffs_of(story)[:_MOST_DIFFS]:
        try:
            compared.append((request, version_diff(ledger, request), ""))
        except OpenDataFlowError as error:  # swept, or never written: the rest of the story stands
            compared.append((request, None, str(error)))
        except click.exceptions.Exit:
            compared.append((request, None, f"{request.chunk} could not be compared on Spark"))
    return compared


def _on_spark(request: DiffRequest) -> RowDiff | None:
    from opendataflow_dagster.model.diff import RowDiff

    child = run_module("engine.version_diff", output.json_text(request))
    if child.exit_code != 0:
        output.write(child.message, err=True)
        click.get_current_context().exit(child.exit_code if child.exit_code > 0 else OpenDataFlowError.exit_code)
    return RowDiff.from_json(child.value) if child.value else None


def print_diff(diff: VersionDiff) -> None:
    output.heading(f"{diff.chunk}: {diff.old} -> {diff.new}")
    if diff.new.reason:
        output.say(f"  not published: {diff.new.reason}")
    _print_facts(diff)
    if diff.columns:
        output.heading("\nColumns")
        output.table(
            ["column", "change", "old", "new"],
            [[each.column, each.change, each.old or "", each.new or ""] for each in diff.columns],
        )
    output.heading("\nRows")
    if diff.rows is None:
        same = "; both have the same content" if diff.equal else ""
        output.say(f"  not compared: {diff.rows_note}{same}")
    else:
        _print_rows(diff.rows)


def _print_facts(diff: VersionDiff) -> None:
    old, new = diff.old, diff.new
    rows = diff.rows
    facts = [
        ("published", output.moment(old.published), output.moment(new.published)),
        ("rows", _number(rows.old_rows if rows else old.rows), _number(rows.new_rows if rows else new.rows)),
        ("bytes", _number(old.bytes), _number(new.bytes)),
        ("code", old.code_version or "", new.code_version or ""),
        *(("check " + name, _check(old, name), _check(new, name)) for name in _check_names(old, new)),
        *((f"input {each.chunk}", each.old or "none", each.new or "none") for each in diff.inputs),
    ]
    output.table(["fact", "old", "new"], facts)


def _print_rows(rows: RowDiff) -> None:
    if rows.note:
        output.say(f"  whole rows are compared: {rows.note}")
    figures = f"{rows.added:,} added, {rows.removed:,} removed"
    if rows.key:
        figures += f", {rows.changed:,} changed (by {', '.join(rows.key)})"
    output.say(f"  {figures}" if not rows.equal else "  all equal")
    if rows.changed_values:
        output.heading("\nChanged values")
        counts = sorted(rows.changed_values.items(), key=lambda item: -item[1])
        output.table(["column", "rows"], [[name, f"{count:,}"] for name, count in counts], right=["rows"])
    if rows.examples:
        output.heading("\nExamples")
        columns = ["row", "change", "values"]
        output.table(columns if rows.key else columns[1:], [_example(example) for example in rows.examples])


def _example(example: RowExample) -> list[output.Cell]:
    old, new = example.old or {}, example.new or {}
    if example.change == "changed":
        values = ", ".join(f"{name}: {value} -> {new[name]}" for name, value in old.items())
    else:
        values = _named(old or new)
    times = f" ({example.times:,} times)" if example.times > 1 else ""
    cells: list[output.Cell] = [f"{example.change}{times}", values]
    return [_named(example.key), *cells] if example.key else cells


def _named(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _check_names(old: Side, new: Side) -> list[str]:
    return list(dict.fromkeys(check.name for check in (*new.checks, *old.checks)))


def _check(side: Side, name: str) -> str:
    for check in side.checks:
        if check.name == name:
            result = "passed" if check.passed else "warning" if check.is_warning else "FAILED"
            return f"{result}: {check.detail}" if check.detail else result
    return ""


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
