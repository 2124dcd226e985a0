"""Times and zones. Oracle: `datetime` and `zoneinfo`, and moments written out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passdown.kernel.clock import FixedClock, SystemClock
from passdown.kernel.timestamps import (
    TimestampRefused,
    ZoneRefused,
    ago,
    format_local,
    format_timestamp,
    is_zone,
    parse_timestamp,
    zone,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = "0001-01-01T00:00:00.000000Z"
LAST = "9999-12-31T23:59:59.999999Z"
RULES = ("format", "date", "time", "leap_second", "fraction", "no_offset", "offset", "out_of_range")
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def refusal(text: str) -> str:
    with pytest.raises(TimestampRefused) as refused:
        parse_timestamp(text)
    return refused.value.rule


@given(st.datetimes(timezones=st.just(UTC)))
@settings(deadline=None)
def test_a_written_timestamp_is_the_moment_and_is_read_back(moment: datetime) -> None:
    text = format_timestamp(microseconds(moment))
    assert text == f"{moment.year:04d}-" + moment.strftime("%m-%dT%H:%M:%S.%fZ")
    assert parse_timestamp(text) == microseconds(moment)


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS), st.booleans())
@settings(deadline=None)
def test_an_offset_is_taken_into_account(moment: datetime, lower: bool) -> None:
    # isoformat writes RFC 3339 for these offsets.
    text = moment.isoformat()
    assert parse_timestamp(text.lower() if lower else text) == microseconds(moment)


def test_the_epoch_and_a_known_moment() -> None:
    assert format_timestamp(0) == "1970-01-01T00:00:00.000000Z"
    assert format_timestamp(-1) == "1969-12-31T23:59:59.999999Z"
    assert parse_timestamp("2001-09-09T01:46:40Z") == 10**15
    assert parse_timestamp("2001-09-09T03:46:40.000001+02:00") == 10**15 + 1
    assert parse_timestamp("2001-09-09T01:46:40.5-00:00") == 10**15 + 500_000


def test_years_one_to_9999_are_the_limits() -> None:
    first, last = microseconds(datetime(1, 1, 1, tzinfo=UTC)), microseconds(datetime.max.replace(tzinfo=UTC))
    assert (format_timestamp(first), format_timestamp(last)) == (FIRST, LAST)
    assert (parse_timestamp(FIRST), parse_timestamp(LAST)) == (first, last)
    for us in (first - 1, last + 1, 10**40, -(10**40)):
        with pytest.raises(TimestampRefused) as refused:
            format_timestamp(us)
        assert refused.value.rule == "out_of_range"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "format"),
        ("now", "format"),
        ("1700000000", "format"),
        ("2026-01-02", "format"),
        ("2026-01-02 03:04:05Z", "format"),
        ("2026-01-02T03:04Z", "format"),
        ("2026-1-02T03:04:05Z", "format"),
        ("20260102T030405Z", "format"),
        (" 2026-01-02T03:04:05Z", "format"),
        ("2026-01-02T03:04:05Z\n", "format"),
        ("2026-01-02T03:04:05.Z", "format"),
        ("2026-01-02T03:04:05,5Z", "format"),
        ("2026-01-02T03:04:05+0100", "format"),
        ("2026-01-02T03:04:05+01", "format"),
        ("2026-01-02T03:04:05 UTC", "format"),
        ("\u0662\u0660\u0662\u0666-01-02T03:04:05Z", "format"),
        ("+12026-01-02T03:04:05Z", "format"),
        ("2026-01-02T03:04:05", "no_offset"),
        ("2026-01-02T03:04:05.123456", "no_offset"),
        ("2026-01-02T03:04:05.1234567Z", "fraction"),
        ("2026-01-02T03:04:05.0000000Z", "fraction"),
        ("2026-01-02T03:04:05." + "0" * 100_000 + "Z", "fraction"),
        ("2016-12-31T23:59:60Z", "leap_second"),
        ("2026-01-02T03:04:61Z", "time"),
        ("2026-01-02T03:60:00Z", "time"),
        ("2026-01-02T24:00:00Z", "time"),
        ("2026-02-29T00:00:00Z", "date"),
        ("2026-13-01T00:00:00Z", "date"),
        ("2026-00-01T00:00:00Z", "date"),
        ("2026-04-31T00:00:00Z", "date"),
        ("2026-01-02T03:04:05+24:00", "offset"),
        ("2026-01-02T03:04:05-01:60", "offset"),
        ("0000-01-01T00:00:00Z", "out_of_range"),
        ("0001-01-01T00:00:00+00:01", "out_of_range"),
        ("9999-12-31T23:59:59-00:01", "out_of_range"),
    ],
)
def test_what_is_no_exact_moment_is_refused_with_its_rule(text: str, rule: str) -> None:
    assert refusal(text) == rule


def test_the_edges_of_an_offset_and_of_a_year() -> None:
    assert format_timestamp(parse_timestamp("0001-01-01T00:01:00+00:01")) == FIRST
    assert format_timestamp(parse_timestamp("9999-12-31T23:58:59.999999-00:01")) == LAST
    assert format_timestamp(parse_timestamp("2024-02-29T23:59:59+23:59")) == "2024-02-29T00:00:59.000000Z"


@given(st.text(st.sampled_from("0123456789-:.TZtz+ ")) | st.text(max_size=30))
@settings(deadline=None)
def test_any_text_is_read_or_refused_with_a_type(text: str) -> None:
    try:
        us = parse_timestamp(text)
    except TimestampRefused as refused:
        assert refused.rule in RULES
    else:
        assert parse_timestamp(format_timestamp(us)) == us


def test_every_zone_of_the_database_but_the_unset_one_is_known_and_loads() -> None:
    names = files("tzdata").joinpath("zones").read_text("ascii").split()
    assert len(names) > 400
    assert [name for name in names if not is_zone(name)] == ["Factory"]
    assert all(zone(name).key == name for name in names if name != "Factory")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "europe/berlin",
        "Europe/Berlin ",
        "Europe",
        "CEST",
        "+02:00",
        "UTC+2",
        "localtime",
        "posixrules",
        "posix/Europe/Berlin",
        "right/Europe/Berlin",
        "/usr/share/zoneinfo/UTC",
        "../UTC",
        "Europe/../UTC",
        "tzdata.zi",
        "UTC\x00",
        "\ud800",
        "A" * 100_000,
    ],
)
def test_what_is_no_zone_name_is_refused(name: str) -> None:
    # Would catch a lookup that opens files by the caller's name.
    assert not is_zone(name)
    with pytest.raises(ZoneRefused) as refused:
        zone(name)
    assert refused.value.rule == "unknown_zone"
    with pytest.raises(ZoneRefused):
        format_local(0, name)


def test_local_time_names_its_zone_and_follows_daylight_saving() -> None:
    # Clocks in Berlin went forward at 2026-03-29T01:00Z and back at 2026-10-25T01:00Z.
    before = parse_timestamp("2026-03-29T00:59:59.999999Z")
    assert format_local(before, "Europe/Berlin") == "2026-03-29 01:59:59 Europe/Berlin"
    assert format_local(before + 1, "Europe/Berlin") == "2026-03-29 03:00:00 Europe/Berlin"
    back = parse_timestamp("2026-10-25T01:00:00Z")
    assert format_local(back - 1, "Europe/Berlin") == "2026-10-25 02:59:59 Europe/Berlin"
    assert format_local(back, "Europe/Berlin") == "2026-10-25 02:00:00 Europe/Berlin"
    assert format_local(before, "Asia/Shanghai") == "2026-03-29 08:59:59 Asia/Shanghai"
    assert format_local(before, "UTC") == format_local(before, None) == "2026-03-29 00:59:59 UTC"


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Africa/Monrovia"]),
)
@settings(deadline=None)
def test_local_time_is_that_of_the_zone_database(moment: datetime, name: str) -> None:
    local = moment.astimezone(ZoneInfo(name))
    expected = (
        f"{local.year:04d}-{local.month:02d}-{local.day:02d} {local.hour:02d}:{local.minute:02d}:{local.second:02d}"
    )
    assert format_local(microseconds(moment), name) == f"{expected} {name}"


def test_a_local_date_outside_the_calendar_is_refused() -> None:
    for us, name in ((parse_timestamp(FIRST), "America/New_York"), (parse_timestamp(LAST), "Asia/Tokyo")):
        with pytest.raises(TimestampRefused) as refused:
            format_local(us, name)
        assert refused.value.rule == "out_of_range"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (5 * 60 + 59, "5 min ago"),
        (3_599, "59 min ago"),
        (3_600, "1 h ago"),
        (86_399, "23 h ago"),
        (86_400, "1 d ago"),
        (400 * 86_400, "400 d ago"),
        (-59, "just now"),
        (-60, "in 1 min"),
        (-7_200, "in 2 h"),
        (-3 * 86_400, "in 3 d"),
    ],
)
def test_distance_in_time_is_told_in_whole_units(seconds: int, words: str) -> None:
    now = 10**15
    assert ago(now - seconds * 1_000_000, now) == words


def test_a_fixed_clock_stands_until_it_is_moved_either_way() -> None:
    clock = FixedClock(1_000)
    assert (clock.now_us(), clock.now_us()) == (1_000, 1_000)
    clock.move(-1)
    assert clock.now_us() == 999


def test_the_system_clock_tells_microseconds_of_utc() -> None:
    # Would catch milliseconds, nanoseconds and local time; a clock may go back, so no closer.
    told = EPOCH + timedelta(microseconds=SystemClock().now_us())
    assert abs(told - datetime.now(UTC)) < timedelta(hours=1)
