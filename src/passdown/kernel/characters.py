"""Which characters a reader cannot see, and where one of them does visible work.

A character is *hidden* when it has no shape of its own: control characters, directional controls, zero-width and
filler characters, line separators, tag characters, and the code points that are no characters at all. Hidden
characters are how one text is made to look like another, so surfaces show them as ``\\u{...}`` (see
:mod:`passdown.kernel.escape`). The tables are written out here, not taken from the Unicode data of the running Python,
so that the same text is shown the same way by every version.

A few hidden characters are part of ordinary writing. They keep their place only where they do their work, one at a
time: joiners after a letter or mark of a script that joins, or between two emoji; variation selectors of emoji and
Mongolian; the tags of the three flags that are spelled with them. A run of them hides data, so its rest is shown.

Public: :data:`WHITE_SPACE`, :data:`HIDDEN`, :func:`is_hidden`, :func:`is_emoji`, :func:`works_here`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# The 25 characters with the Unicode property White_Space; `str.isspace` would add U+001C..U+001F.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

ZWNJ: Final = "\u200c"
ZWJ: Final = "\u200d"
TEXT_STYLE: Final = "\ufe0e"
EMOJI_STYLE: Final = "\ufe0f"
KEYCAP: Final = "\u20e3"
KEYCAP_BASES: Final = frozenset("0123456789#*")
MONGOLIAN_SELECTORS: Final = frozenset("\u180b\u180c\u180d\u180e\u180f")

_Ranges = tuple[tuple[int, int], ...]


def _ranges(listed: str) -> _Ranges:
    """Code points and ranges of them, written in hexadecimal."""
    ends = (item.partition("-") for item in listed.split())
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in ends)


_HIDDEN: Final[_Ranges] = (
    (0x0000, 0x0008),  # C0 without tab and newline
    (0x000B, 0x001F),
    (0x007F, 0x009F),  # DEL and C1
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian selectors and vowel separator
    (0x200B, 0x200F),  # zero-width space and joiners, directional marks
    (0x2028, 0x202E),  # line and paragraph separator, embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0x3164, 0x3164),  # Hangul filler
    (0xD800, 0xDFFF),  # lone surrogates
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # half-width Hangul filler
    (0xFFF0, 0xFFFB),  # reserved, interlinear annotation
    (0x13430, 0x1343F),  # hieroglyph layout controls
    (0x1BCA0, 0x1BCA3),  # shorthand controls
    (0x1D159, 0x1D159),  # null note head
    (0x1D173, 0x1D17A),  # musical beams and slurs
    (0xE0000, 0xE0FFF),  # tags, supplementary variation selectors
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)),  # noncharacters
)

# The pictographs that emoji sequences are built from (Unicode's Extended_Pictographic, without code points that are
# reserved in blocks of other symbols) and the five skin tones.
_EMOJI: Final[_Ranges] = _ranges(
    "A9 AE 203C 2049 2122 2139 2194-2199 21A9-21AA 231A-231B 2328 23CF 23E9-23F3 23F8-23FA 24C2 25AA-25AB 25B6 25C0"
    " 25FB-25FE 2600-2604 260E 2611 2614-2615 2618 261D 2620 2622-2623 2626 262A 262E-262F 2638-263A 2640 2642"
    " 2648-2653 265F-2660 2663 2665-2666 2668 267B 267E-267F 2692-2697 2699 269B-269C 26A0-26A1 26A7 26AA-26AB"
    " 26B0-26B1 26BD-26BE 26C4-26C5 26C8 26CE-26CF 26D1 26D3-26D4 26E9-26EA 26F0-26F5 26F7-26FA 26FD 2702 2705"
    " 2708-270D 270F 2712 2714 2716 271D 2721 2728 2733-2734 2744 2747 274C 274E 2753-2755 2757 2763-2764 2795-2797"
    " 27A1 27B0 27BF 2934-2935 2B05-2B07 2B1B-2B1C 2B50 2B55 3030 303D 3297 3299 1F004 1F0CF 1F170-1F171 1F17E-1F17F"
    " 1F18E 1F191-1F19A 1F201-1F202 1F21A 1F22F 1F232-1F23A 1F250-1F251 1F300-1F321 1F324-1F393 1F396-1F397"
    " 1F399-1F39B 1F39E-1F3F0 1F3F3-1F3F5 1F3F7-1F4FD 1F4FF-1F53D 1F549-1F54E 1F550-1F567 1F56F-1F570 1F573-1F57A"
    " 1F587 1F58A-1F58D 1F590 1F595-1F596 1F5A4-1F5A5 1F5A8 1F5B1-1F5B2 1F5BC 1F5C2-1F5C4 1F5D1-1F5D3 1F5DC-1F5DE"
    " 1F5E1 1F5E3 1F5E8 1F5EF 1F5F3 1F5FA-1F64F 1F680-1F6C5 1F6CB-1F6D2 1F6D5-1F6E5 1F6E9 1F6EB-1F6F0 1F6F3-1F6FF"
    " 1F7E0-1F7F0 1F90C-1F93A 1F93C-1F945 1F947-1F9FF 1FA70-1FAFF"
)

# Scripts whose letters change shape with their neighbours, where joiners are spelling.
_JOINING: Final[_Ranges] = (
    (0x0600, 0x08FF),  # Arabic, Syriac, N'Ko, Mandaic and their extensions
    (0x0900, 0x0DFF),  # Devanagari to Sinhala
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1780, 0x18AF),  # Khmer, Mongolian
    (0x1A20, 0x1BFF),  # Tai Tham, Balinese, Sundanese, Batak
    (0x1C00, 0x1C4F),  # Lepcha
    (0x1CD0, 0x1CFF),  # Vedic signs
    (0xA840, 0xA8FF),  # Phags-pa, Saurashtra, Devanagari extension
    (0xA930, 0xA9FF),  # Rejang, Javanese, Myanmar extension
    (0xAA00, 0xAA7F),  # Cham, Myanmar extension
    (0xAAE0, 0xAAFF),  # Meetei Mayek extension
    (0xABC0, 0xABFF),  # Meetei Mayek
    (0xFB50, 0xFDCF),  # Arabic presentation forms
    (0xFDF0, 0xFDFF),
    (0xFE70, 0xFEFC),
    (0x10A00, 0x10A5F),  # Kharoshthi
    (0x10AC0, 0x10AFF),  # Manichaean
    (0x10B80, 0x10BAF),  # Psalter Pahlavi
    (0x10D00, 0x10D3F),  # Hanifi Rohingya
    (0x10F30, 0x10FDF),  # Sogdian, Old Uyghur, Chorasmian
    (0x11000, 0x1123F),  # Brahmi, Kaithi, Chakma, Mahajani, Sharada, Khojki
    (0x11300, 0x1137F),  # Grantha
    (0x11400, 0x114DF),  # Newa, Tirhuta
    (0x11580, 0x1165F),  # Siddham, Modi
    (0x11680, 0x1174F),  # Takri, Ahom
    (0x11900, 0x11DAF),  # Dives Akuru to Gunjala Gondi
    (0x1E900, 0x1E95F),  # Adlam
)


def _class(ranges: _Ranges) -> str:
    """The inside of a regular expression's character class."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_EMOJI_CHAR: Final = re.compile(f"[{_class(_EMOJI)}]")
_JOINING_CHAR: Final = re.compile(f"[{_class(_JOINING)}]")
_HIDDEN_CHAR: Final = re.compile(f"[{_class(_HIDDEN)}]")


def _tagged_flag(region: str) -> str:
    return "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"


# Any other tag sequence looks like a plain black flag and carries text that nobody sees.
_TAGGED_FLAGS: Final = "|".join(_tagged_flag(region) for region in ("gbeng", "gbsct", "gbwls"))

HIDDEN: Final = re.compile(f"{_TAGGED_FLAGS}|[{_class(_HIDDEN)}]")
"""Matches one hidden character, or as one match a whole flag whose tags are part of its spelling."""


def is_hidden(char: str) -> bool:
    """Whether the one character has no visible shape of its own, whatever stands beside it."""
    return _HIDDEN_CHAR.match(char) is not None


def is_emoji(char: str) -> bool:
    """Whether the one character is a pictograph that emoji sequences are built from."""
    return _EMOJI_CHAR.match(char) is not None


def works_here(text: str, index: int) -> bool:
    """Whether the hidden character at ``text[index]`` is spelling in this place, so that it may stay as it is."""
    char = text[index]
    before = text[index - 1] if index else ""
    after = text[index + 1] if index + 1 < len(text) else ""
    if not before:
        return False
    if char in (ZWJ, ZWNJ) and _JOINING_CHAR.match(before):
        return unicodedata.category(before)[0] in "LM" and not is_hidden(before)
    if char == ZWJ:
        if before == EMOJI_STYLE and index > 1:
            before = text[index - 2]
        return is_emoji(before) and bool(after) and is_emoji(after)
    if char == EMOJI_STYLE and before in KEYCAP_BASES:
        return after == KEYCAP
    if char in (EMOJI_STYLE, TEXT_STYLE):
        return is_emoji(before)
    if char in MONGOLIAN_SELECTORS:
        return "\u1820" <= before <= "\u18aa" and before.isalpha()
    return False
