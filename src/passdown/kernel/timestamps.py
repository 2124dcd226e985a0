"""Times as text, and time zones by name.

Inside, a time is an integer of microseconds UTC since 1970-01-01T00:00:00Z, from year 1 to year 9999. Its one written
form is ``YYYY-MM-DDTHH:MM:SS.ffffffZ``. What is read is RFC 3339 with an offset; what that integer cannot hold exactly
(a seventh fraction digit, a leap second) is refused, never rounded.

Public: :func:`format_timestamp`, :func:`parse_timestamp`, :func:`is_zone`, :func:`zone`, :func:`format_local`,
:func:`ago`, :class:`TimestampRefused`, :class:`ZoneRefused`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
_OFFSET: Final = re.compile(r"[Zz]|([+-])([0-9]{2}):([0-9]{2})")
_MINUTE_US: Final = 60_000_000
_HOUR_US: Final = 60 * _MINUTE_US
_DAY_US: Final = 24 * _HOUR_US
# A name of the time zone database that says "not yet set" and is no place.
_NO_ZONE: Final = "Factory"


class TimestampRefused(ValueError):
    """Text that is no timestamp, or a time that has no written form. ``rule`` says why.

    Rules: ``format``, ``date``, ``time``, ``leap_second``, ``fraction``, ``no_offset``, ``offset``, ``out_of_range``.
    """

    def __init__(self, rule: str) -> None:
        self.rule = rule
        super().__init__(f"timestamp refused: {rule}")


class ZoneRefused(ValueError):
    """A name that is no time zone of the IANA database. ``rule`` is ``unknown_zone``."""

    def __init__(self) -> None:
        self.rule = "unknown_zone"
        super().__init__("time zone refused: unknown_zone")


def format_timestamp(us: int) -> str:
    """``us`` as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``. Outside years 1 to 9999: ``TimestampRefused("out_of_range")``."""
    return _utc(us).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_timestamp(text: str) -> int:
    """Microseconds UTC of an RFC 3339 timestamp; ``t`` and ``z`` may be lower case, ``-00:00`` is UTC.

    Refused with :class:`TimestampRefused`: another form (``format``), a day or a time of day that does not exist
    (``date``, ``time``), second 60 (``leap_second``), more than six fraction digits (``fraction``), no offset
    (``no_offset``), an offset of a day or more (``offset``), a moment outside years 1 to 9999 (``out_of_range``).
    """
    date = _DATE.match(text)
    if date is None or text[date.end() : date.end() + 1] not in ("T", "t"):
        raise TimestampRefused("format")
    time = _TIME.match(text, date.end() + 1)
    if time is None:
        raise TimestampRefused("format")
    if time.end() == len(text):
        raise TimestampRefused("no_offset")
    offset = _OFFSET.fullmatch(text, time.end())
    if offset is None:
        raise TimestampRefused("format")
    fraction = time[4] or ""
    if len(fraction) > 6:
        raise TimestampRefused("fraction")
    hour, minute, second = int(time[1]), int(time[2]), int(time[3])
    if second == 60:
        raise TimestampRefused("leap_second")
    if hour > 23 or minute > 59 or second > 59:
        raise TimestampRefused("time")
    zone_of_text = timezone(_offset(offset))
    if date[1] == "0000":
        raise TimestampRefused("out_of_range")
    try:
        day = datetime(int(date[1]), int(date[2]), int(date[3]), tzinfo=zone_of_text)
    except ValueError:
        raise TimestampRefused("date") from None
    since_midnight = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=int(fraction.ljust(6, "0")))
    us = (day - _EPOCH + since_midnight) // _MICROSECOND
    _utc(us)
    return us


def is_zone(name: str) -> bool:
    """Whether ``name`` is the exact name of a time zone in the IANA database."""
    return name in _zone_names()


def zone(name: str) -> ZoneInfo:
    """The time zone of an IANA name, exact in case; anything else, a path for one, is :class:`ZoneRefused`.

    The rules come from this machine's database, or from the ``tzdata`` package where it has none.
    """
    from zoneinfo import ZoneInfo

    if not is_zone(name):
        raise ZoneRefused
    return ZoneInfo(name)


def format_local(us: int, zone_name: str | None) -> str:
    """``us`` as ``YYYY-MM-DD HH:MM:SS ZONE`` on the clocks of that zone (``None``: UTC), rounded down to a second.

    Raises :class:`ZoneRefused`, and :class:`TimestampRefused` (``out_of_range``) where the local date has no form.
    """
    moment = _utc(us)
    if zone_name is not None:
        try:
            moment = moment.astimezone(zone(zone_name))
        except OverflowError:
            raise TimestampRefused("out_of_range") from None
    local = moment.replace(tzinfo=None, microsecond=0).isoformat(sep=" ")
    return f"{local} {zone_name or 'UTC'}"


def ago(us: int, now_us: int) -> str:
    """How long before ``now_us`` (or after it) ``us`` is, in whole minutes, hours or days, rounded towards now."""
    distance = abs(now_us - us)
    if distance < _MINUTE_US:
        return "just now"
    if distance < _HOUR_US:
        span = f"{distance // _MINUTE_US} min"
    elif distance < _DAY_US:
        span = f"{distance // _HOUR_US} h"
    else:
        span = f"{distance // _DAY_US} d"
    return f"{span} ago" if us < now_us else f"in {span}"


def _utc(us: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        raise TimestampRefused("out_of_range") from None


def _offset(match: re.Match[str]) -> timedelta:
    if match[1] is None:
        return timedelta()
    hours, minutes = int(match[2]), int(match[3])
    if hours > 23 or minutes > 59:
        raise TimestampRefused("offset")
    span = timedelta(hours=hours, minutes=minutes)
    return -span if match[1] == "-" else span


@cache
def _zone_names() -> frozenset[str]:
    # The list of the package, not of this machine: everywhere the same names are accepted, and a file beside the
    # zones ("localtime", "posix/...") is none.
    from importlib.resources import files

    names = files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return frozenset(names.split()) - {_NO_ZONE}
