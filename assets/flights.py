"""Flights out of New York in 2013, by day: raw, cleaned, and statistics per carrier and weather."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from opendataflow_dagster import ChunkContext, accepted, between, daily, dataset, not_null, row_count, unique

from .source import days_of

YEAR = daily("2013-01-01", "2013-12-31")


@dataset(partitions=YEAR, domain="flights", owner="team:flights", checks=[row_count(minimum=1)])
def raw_flights(context: ChunkContext) -> DataFrame:
    """A day of flights as in the source: all columns are text."""
    return raw(context, "flights")


@dataset(partitions=YEAR, domain="flights", owner="team:flights")
def raw_weather(context: ChunkContext) -> DataFrame:
    """A day of hourly weather at the three airports, as in the source. The last day of the year has none."""
    return raw(context, "weather")


CLEAN_FLIGHTS = (
    StructType()
    .add("time_hour", "timestamp")
    .add("carrier", "string")
    .add("flight", "integer")
    .add("tailnum", "string")
    .add("origin", "string")
    .add("dest", "string")
    .add("dep_delay", "integer")
    .add("arr_delay", "integer")
    .add("distance", "integer")
    .add("cancelled", "boolean")
)


@dataset(
    partitions=YEAR,
    domain="flights",
    owner="team:flights",
    schema=CLEAN_FLIGHTS,
    checks=[
        row_count(minimum=1),
        not_null("time_hour", "carrier", "flight", "dest", "distance"),
        accepted("origin", ["EWR", "JFK", "LGA"]),
        between("dep_delay", -120, 2000),
        unique("time_hour", "carrier", "flight", "origin"),
    ],
)
def clean_flights(raw_flights: DataFrame) -> DataFrame:
    """Flights with types. A value that cannot be cast fails the chunk instead of becoming null."""
    return raw_flights.select(
        given("time_hour").cast("timestamp").alias("time_hour"),
        given("carrier").alias("carrier"),
        given("flight").cast("integer").alias("flight"),
        given("tailnum").alias("tailnum"),
        given("origin").alias("origin"),
        given("dest").alias("dest"),
        given("dep_delay").cast("integer").alias("dep_delay"),
        given("arr_delay").cast("integer").alias("arr_delay"),
        given("distance").cast("integer").alias("distance"),
        given("dep_time").isNull().alias("cancelled"),
    )


@dataset(partitions=YEAR, domain="flights", owner="team:flights", checks=[not_null("carrier"), unique("carrier")])
def carrier_stats(clean_flights: DataFrame, raw_weather: DataFrame) -> DataFrame:
    """Flights, cancellations and delays of each carrier on a day, and how many flights were in rain or fog."""
    weather = raw_weather.select(
        "origin",
        given("time_hour").cast("timestamp").alias("time_hour"),
        ((given("precip").cast("double") > 0) | (given("visib").cast("double") < 3)).alias("rough"),
    )
    return (
        clean_flights.join(weather.dropDuplicates(["origin", "time_hour"]), ["origin", "time_hour"], "left")
        .groupBy("carrier")
        .agg(
            F.count("*").alias("flights"),
            F.count_if("cancelled").alias("cancelled"),
            F.round(F.avg("dep_delay"), 2).alias("mean_dep_delay"),
            F.round(F.avg("arr_delay"), 2).alias("mean_arr_delay"),
            F.count_if("rough").alias("in_rough_weather"),
        )
    )


def raw(context: ChunkContext, table: str) -> DataFrame:
    header, days = days_of(table)
    schema = StructType()
    for name in header:
        schema = schema.add(name, "string")
    return context.spark.createDataFrame(days.get(context.dataid, []), schema)


def given(name: str) -> Column:
    """The source writes NA for a missing value."""
    return F.nullif(F.col(name), F.lit("NA"))
