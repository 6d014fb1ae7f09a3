"""Which changes of code are changes: the fingerprint of a function, a query and a script."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from opendataflow_dagster import dataset, sql_dataset
from opendataflow_dagster.engine.fingerprint import of_command, of_function, of_query

NUMBERS = itertools.count()

PLAIN = """
@declared(checks=[])
def total(raw):
    low = raw.where("price < 10")
    return low.groupBy("shop").sum("price")
"""
REFORMATTED = '''
# Sums.

@declared(
    checks=["another"],
)
def sum_by_shop(
    raw,
):
    """The sum of a shop."""
    # Cheap ones only.
    low = raw.where('price < 10')

    return (low
            .groupBy("shop")   # one row each
            .sum("price"))
'''


def module(folder: Path, text: str) -> ModuleType:
    path = folder / f"code_{next(NUMBERS)}.py"
    path.write_text("def declared(**options):\n    return lambda function: function\n" + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def of_text(folder: Path, text: str, name: str = "total") -> str | None:
    return of_function(getattr(module(folder, text), name))


def test_comments_docstrings_formatting_names_and_options_are_no_change_of_a_function(tmp_path: Path) -> None:
    assert of_text(tmp_path, PLAIN) == of_text(tmp_path, REFORMATTED, "sum_by_shop")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("price < 10", "price < 11"),
        ('"shop"', '"shop", "day"'),
        ("low.groupBy", "raw.groupBy"),
        ("def total(raw)", "def total(raw, most=3)"),
        ("(checks=[])\n", "(checks=[])\n@declared(cached=True)\n"),
        ("    low =", "    raw = raw.distinct()\n    low ="),
    ],
)
def test_what_a_function_computes_is_a_change(tmp_path: Path, before: str, after: str) -> None:
    assert before in PLAIN
    assert of_text(tmp_path, PLAIN.replace(before, after)) != of_text(tmp_path, PLAIN)


def test_the_fingerprint_of_a_function_is_the_same_in_every_version_of_python_and_of_this_project(
    tmp_path: Path,
) -> None:
    """Otherwise every chunk would be made by other code after an upgrade."""
    text = '''
    @declared()
    def total(raw: "Frame", *rest: int, most: float = 1_000.5, **named: object) -> "Frame":
        """Docs."""
        class Row:
            """Docs."""
            kind: str = u"a"
        async def load(): return [await row async for row in raw if row not in (None, ..., b"x")]
        with open(f"{most!r:>{10}}") as file, raw as (a, *b):
            match a:
                case {"x": [1, *_], **more}: pass
                case Row(kind="a" "ü") | None: pass
                case _ if (n := 2j) is not None: return lambda x, /, y=1: {**x} | {y for y in x[1:, ::2]}
        try:
            raise ValueError from None
        except (KeyError, ValueError) as error:
            global seen
            seen = not -most <= 3 < 4
        else: del raw
    '''
    assert of_text(tmp_path, text) == "python:cc8fba66086e053d"


def test_nested_functions_and_lambdas_have_their_own_code(tmp_path: Path) -> None:
    text = """
    def outer(low):
        def total(raw):
            return raw.where(raw.price < {0})
        return total
    total = outer(1)
    least = (lambda raw: raw.where("price < {1}"))
    """
    first, second = (module(tmp_path, text.format(*numbers)) for numbers in ((1, 1), (1, 2)))
    assert of_function(first.total) == of_function(second.total)
    assert of_function(first.least) != of_function(second.least)
    assert of_function(first.least) is not None


def test_a_function_whose_source_is_unknown_has_no_fingerprint() -> None:
    scope: dict[str, Callable[..., object]] = {}
    exec("def typed(raw): return raw", scope)  # noqa: S102 - as into a console
    two = (lambda raw: raw, lambda raw: raw.distinct())
    for function in (scope["typed"], functools.partial(print, 1), len, *two):
        assert of_function(function) is None


def test_a_declared_version_counts_instead_of_the_fingerprint() -> None:
    def orders(raw: object) -> object:
        return raw

    assert dataset("orders", code_version="2")(orders).current_code() == "2"
    assert dataset("orders")(orders).current_code() == of_function(orders)
    assert sql_dataset("select 1 from raw", "one", code_version="v3").current_code() == "v3"


# ---- SQL

QUERY = "select a.Shop, sum(price) as `Total Price` from raw a where note <> 'it''s -- new' group by shop"


def test_comments_spaces_and_the_case_of_keywords_and_functions_are_no_change_of_a_query() -> None:
    changed = """
    -- Prices.
    SELECT a.Shop,
           /* of all /* nested */ days */ Sum (price) AS `Total Price`
      FROM raw a
     WHERE note <> 'it''s -- new'
     GROUP
        BY shop;
    """
    assert of_query(changed) == of_query(QUERY)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("it''s -- new", "it''s -- old"),
        ("it''s -- new", "it''s  -- new"),
        ("Total Price", "total price"),
        ("a.Shop", "a.shop"),
        ("sum(", "max("),
        ("<>", "="),
        ("by shop", "by shop, day"),
        ("as `Total Price`", "as Total"),
    ],
)
def test_what_a_query_computes_is_a_change(before: str, after: str) -> None:
    assert before in QUERY
    assert of_query(QUERY.replace(before, after)) != of_query(QUERY)


def test_the_fingerprint_of_a_query_is_the_same_in_every_version_of_the_parser() -> None:
    """Otherwise every chunk would be made by other code after an upgrade."""
    text = """
    with days as (select /*+ broadcast(d) */ d.*, row_number() over (partition by `a b` order by x desc nulls last) n
                    from days d left anti join lateral view explode(split(r'\\d', "x")) t as e)
    select cast(x as decimal(10, 2)), x::int, interval 1 day, date '2024-01-01',
           case when n >= 1e3 then null else a.b['k'] end, transform(xs, y -> y + 1), current_date, if(a, 1, 0L)
      from days tablesample (5 percent) where d = :dataid
    """
    assert of_query(text) == "sql:ed7915b770219900"


# ---- scripts


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_bytes_of_a_script_are_its_code_wherever_it_lies_and_whatever_starts_it(tmp_path: Path) -> None:
    here = script(tmp_path / "load.sh", "#!/bin/sh\necho 1\n")
    there = script(tmp_path / "copy.sh", "#!/bin/sh\necho 1\n")
    assert of_command([str(here), "--verbose"]) == of_command([str(there)]) == of_command(["/bin/sh", str(here)])
    before = of_command([str(here)])
    script(here, "#!/bin/sh\necho 2\n")
    assert of_command([str(here)]) != before


def test_a_command_without_a_script_is_its_program_and_its_words(tmp_path: Path) -> None:
    compiled = tmp_path / "etl"
    compiled.write_bytes(b"\x7fELF\x00\x01")
    before = of_command([str(compiled), "-c", "echo 1"])
    assert of_command([str(compiled), "-c", "echo 2"]) != before
    compiled.write_bytes(b"\x7fELF\x00\x02 ")
    assert of_command([str(compiled), "-c", "echo 1"]) != before
    assert of_command([str(tmp_path / "gone")]) is None
