"""Figures in a transcript -> words, as American readers say them. Whisper writes figures, references hold words."""

import re

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred"))
_IRREGULAR = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_CURRENCIES = {"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros")}
_MONEY = re.compile(r"([$£€])\s?(\d[\d,]*)(?:\.(\d\d))?(?!\d)")
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:,\d{3})+|\d+)(\.\d+)?(st|nd|rd|th|'?s)?(?!\w)", re.IGNORECASE)


def cardinal(number: int) -> str:
    """>>> cardinal(1205)
    'one thousand two hundred five'
    """
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    for scale, name in _SCALES:
        if number >= scale:
            rest = number % scale
            return f"{cardinal(number // scale)} {name}" + (f" {cardinal(rest)}" if rest else "")
    raise AssertionError("unreachable: every number of 100 or more has a scale")


def ordinal(number: int) -> str:
    """>>> ordinal(20), ordinal(21)
    ('twentieth', 'twenty first')
    """
    *first, last = cardinal(number).split()
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    else:
        last = (last[:-1] + "ie" if last.endswith("y") else last) + "th"
    return " ".join([*first, last])


def year(number: int) -> str:
    """Four figures from 1100 to 1999 and 2010 to 2099 as two pairs; other numbers as cardinals.

    >>> year(1905), year(1900), year(2004)
    ('nineteen oh five', 'nineteen hundred', 'two thousand four')
    """
    if not (1100 <= number <= 1999 or 2010 <= number <= 2099):
        return cardinal(number)
    century, rest = divmod(number, 100)
    if not rest:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def spell_out(text: str) -> str:
    """Every figure of the text as words; percent and money signs too.

    >>> spell_out("In 1984, 3 of the 21st men paid $2.50")
    'In nineteen eighty four, three of the twenty first men paid two dollars and fifty cents'
    """
    text = _MONEY.sub(_money, text)
    text = re.sub(r"(?<=\d)\s?%", " percent", text)
    return _NUMBER.sub(_number, text)


def _money(match: re.Match[str]) -> str:
    one, many = _CURRENCIES[match[1]]
    amount = int(match[2].replace(",", ""))
    words = f"{cardinal(amount)} {one if amount == 1 else many}"
    if match[3] and int(match[3]):
        words += f" and {cardinal(int(match[3]))} cents"
    return words


def _number(match: re.Match[str]) -> str:
    figures, fraction, ending = match[1], match[2], (match[3] or "").lower()
    number = int(figures.replace(",", ""))
    if number >= 10**12 or (figures[0] == "0" and len(figures) > 1):
        words = " ".join(_ONES[int(figure)] for figure in figures if figure != ",")
    elif ending in ("st", "nd", "rd", "th"):
        return ordinal(number)
    else:
        words = year(number) if "," not in figures and not fraction else cardinal(number)
    if fraction:
        words += " point " + " ".join(_ONES[int(figure)] for figure in fraction[1:])
    if ending.endswith("s"):  # the 1980s, the 20s
        words = (words[:-1] + "ies") if words.endswith("y") else words + "s"
    return words
