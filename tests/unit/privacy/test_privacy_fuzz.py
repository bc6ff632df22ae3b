"""Whatever the bytes of a ledger or of a guarantee in JSON are: read, or refused with a PrivacyError; never else.

In the suite a few hundred examples. For longer: tools/fuzz.sh --minutes 10, which sets DPANON_FUZZ_MINUTES.
"""

import hashlib
import json
import math
import os
import time

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpanon.privacy import BottleneckFrames, Guarantee, PitchBox, PrivacyError, SpeakerGaussian
from dpanon.privacy.ledger import Ledger, LedgerError, parse

MINUTES = float(os.environ.get("DPANON_FUZZ_MINUTES", "0"))
FEW = settings(
    max_examples=2000 if MINUTES else 80,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
GUARANTEES = [
    PitchBox(10.0, 1).guarantee().compose(BottleneckFrames(1.0).guarantee(num_frames=7).to_unit("utterance")),
    SpeakerGaussian(0.3, 2.0, 8).guarantee(),
    Guarantee.none("no noise"),
    Guarantee.approx(0.5, 1e-7, unit="utterance"),
]
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([10**400, -(10**400), 1e308, 5e-324, 2**63, -0.0, True]),
)
JSON = st.recursive(
    st.none() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
HASHES = st.one_of(JSON, st.sampled_from(["0" * 64, "F" * 64, "0" * 63, "\ud800" * 64]))


def for_some_time(test):
    """Once; with DPANON_FUZZ_MINUTES again and again, with a share of the time for each test."""
    end = time.monotonic() + 60 * MINUTES / NUM_TESTS
    test()
    while time.monotonic() < end:
        test()


NUM_TESTS = 5


def make_rows(folder):
    with Ledger(folder / "budget.jsonl") as ledger:
        for i, guarantee in enumerate(GUARANTEES):
            receipt = ledger.reserve(np.full(160, i / 8), guarantee, f"spk{i % 2}", name="a name" * (i == 2))
            if i % 2:
                ledger.commit(receipt)
    return (folder / "budget.jsonl").read_bytes()


def read_all(data):
    """Everything a reader may ask of a ledger that was accepted."""
    try:
        book = parse(data)
    except LedgerError as error:
        assert str(error).startswith("line ") and "\n" not in str(error)
        return None
    for account in (*book.utterances.values(), *book.speakers.values()):
        assert account.epsilon() > 0.0
        json.dumps(account.total.to_dict())
    return book


def signed(row):
    """A row as one who knows the format would forge it."""
    text = json.dumps(row, separators=(",", ":"))
    return f'{text[:-1]},"hash":"{hashlib.sha256(text.encode()).hexdigest()}"}}'.encode()


def test_a_ledger_of_any_bytes():
    @FEW
    @given(st.binary(max_size=400) | st.lists(JSON.map(lambda x: json.dumps(x).encode())).map(b"\n".join))
    def check(data):
        book = read_all(data)
        assert book is None or book.num_rows == 0 and book.torn == len(data)
        read_all(data + b"\n")

    for_some_time(check)


def test_a_ledger_with_damage(tmp_path):
    data = make_rows(tmp_path)
    whole = parse(data)

    @FEW
    @given(st.data())
    def check(draw):
        at = draw.draw(st.integers(0, len(data)))
        cut = draw.draw(st.integers(at, min(len(data), at + 300)))
        put = draw.draw(st.binary(max_size=20) | st.integers(0, len(data)).map(lambda i: data[i : i + 1000]))
        changed = data[:at] + put + data[cut:]
        book = read_all(changed)
        if book is not None:  # what is accepted is a beginning of it, or all of it
            end = changed.rfind(b"\n") + 1
            assert data.startswith(changed[:end]) and book.num_rows <= whole.num_rows

    for_some_time(check)


def test_a_ledger_with_forged_rows(tmp_path):
    """With valid hashes, so that every check behind them is reached."""
    rows = [json.loads(line) for line in make_rows(tmp_path).splitlines()]

    @FEW
    @given(st.data())
    def check(draw):
        forged, head = [], ""
        number = draw.draw(st.integers(1, len(rows)))
        for n, row in enumerate(rows[:number]):
            new = {**row, "n": n, "prev": head}
            new.pop("hash")
            if n == number - 1:
                name = draw.draw(st.sampled_from(sorted(new)))
                new[name] = draw.draw(HASHES)
                if row["kind"] == "reserve" and draw.draw(st.booleans()):
                    new = {**row, "n": n, "prev": head, "guarantee": draw.draw(guarantees())}
                    new.pop("hash")
            forged.append(signed(new))
            head = json.loads(forged[-1])["hash"]
        read_all(b"".join(row + b"\n" for row in forged))

    for_some_time(check)


@st.composite
def guarantees(draw):
    """A guarantee in JSON with something wrong, or nothing."""
    record = draw(st.sampled_from(GUARANTEES)).to_dict()
    record = json.loads(json.dumps(record))
    for _ in range(draw(st.integers(0, 2))):
        where = draw(st.sampled_from([record, record["params"], *record["parts"]]))
        if where:
            where[draw(st.sampled_from(sorted(where)))] = draw(JSON)
            if not isinstance(record.get("parts"), list) or not all(isinstance(p, dict) for p in record["parts"]):
                break
            if not isinstance(record.get("params"), dict):
                break
    return record


def test_a_guarantee_of_any_bytes():
    @FEW
    @given(st.binary(max_size=200) | st.text(max_size=200) | JSON.map(json.dumps))
    def check(text):
        try:
            Guarantee.from_json(text)
        except PrivacyError:
            pass

    for_some_time(check)


def test_a_guarantee_with_damage():
    @FEW
    @given(guarantees())
    def check(record):
        for read in (lambda: Guarantee.from_json(json.dumps(record)), lambda: Guarantee.from_dict(record)):
            try:
                guarantee = read()
            except PrivacyError:
                continue
            assert Guarantee.from_json(guarantee.to_json()) == guarantee
            assert guarantee.kind == "none" or guarantee.epsilon() > 0.0
            assert not math.isnan(guarantee.epsilon())

    for_some_time(check)
