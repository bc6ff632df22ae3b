"""The ledger: what it counts is never lost, what is wrong with it is always seen, and it tells no names."""

import errno
import hashlib
import json
import math
import os
import random
import resource
import signal
import threading
import time
import traceback

import numpy as np
import pytest
import soundfile

from dpanon.data.audio import read_audio
from dpanon.privacy import BottleneckFrames, Guarantee, KeyedNoise, PitchBox, PrivacyError, SpeakerGaussian, accounting
from dpanon.privacy.book import Book
from dpanon.privacy.ledger import Cap, CapError, Ledger, LedgerError, parse, read

ONE = Guarantee.laplace(1.0, unit="utterance", mechanism="pitch")
UTTERANCE = PitchBox(10.0, 1).guarantee().compose(BottleneckFrames(1.0).guarantee(num_frames=100).to_unit("utterance"))


def speech(seed=0, num=160):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, num).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.jsonl"


def filled(path, num=4):
    """Releases of two recordings by two speakers in turn; the last one is not committed."""
    with Ledger(path) as ledger:
        for i in range(num):
            receipt = ledger.reserve(speech(i % 2), UTTERANCE, speaker=f"spk{i % 2}")
            if i < num - 1:
                ledger.commit(receipt)
    return path.read_bytes()


def in_child(work):
    """Run in a fork; its exit code, 0 if ``work`` returned."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def exit_code(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# totals


def test_releases_of_a_recording_and_of_a_speaker_add_up(path):
    with Ledger(path) as ledger:
        for seed, speaker in ((0, "a"), (0, "a"), (1, "a"), (2, "b")):
            ledger.commit(ledger.reserve(speech(seed), UTTERANCE, speaker))
        assert ledger.of_utterance(speech(0)).total == UTTERANCE.repeat(2)
        assert ledger.of_utterance(speech(0)).epsilon() == 2 * 110.0
        assert ledger.of_utterance(speech(3)).releases == 0
        person = ledger.of_speaker("a")
    assert person.total == UTTERANCE.repeat(3, "speaker") and person.total.n_releases == 3
    assert person.epsilon() == 330.0
    assert read(path).num_rows == 9 and not read(path).reserved


def test_a_total_at_delta_is_that_of_tight_accounting(path):
    frames = Guarantee.pure(0.1, unit="frame", num_units=100)
    with Ledger(path) as ledger:
        for seed in (0, 0, 1):
            ledger.reserve(speech(seed), frames, "a")
        total = ledger.of_speaker("a").epsilon(1e-6)
    assert total == accounting.epsilon(frames.repeat(300, "speaker").parts, 1e-6) < 15.0


def test_releases_of_different_mechanisms_add_up_and_their_words_do_not_grow(path):
    pitch = Guarantee.gdp(0.3, unit="utterance", mechanism="pitch")
    contour = Guarantee.gdp(0.4, unit="utterance", mechanism="contour")
    with Ledger(path) as ledger:
        for guarantee in (pitch, contour) * 3:
            ledger.reserve(speech(), guarantee)
        total = ledger.of_utterance(speech()).total
    assert sorted(total.mechanism.split(" and ")) == ["contour", "pitch"] and total.n_releases == 6
    assert total.mu() == pytest.approx(0.5 * math.sqrt(3))


def test_a_claim_about_a_frame_is_restated_and_one_that_cannot_be_is_refused(path):
    with Ledger(path) as ledger:
        ledger.reserve(speech(), BottleneckFrames(2.0).guarantee(num_frames=50))
        assert ledger.of_utterance(speech()).epsilon() == 100.0
        before = path.read_bytes()
        with pytest.raises(PrivacyError, match="not known"):
            ledger.reserve(speech(), BottleneckFrames(2.0).guarantee())
    assert path.read_bytes() == before


def test_claims_about_speaker_and_utterance_are_counted_together(path):
    latent = SpeakerGaussian(0.5, 1.0, 4).guarantee()
    with Ledger(path) as ledger:
        ledger.reserve(speech(), latent, "a")
        ledger.reserve(speech(), Guarantee.gdp(1.2, unit="utterance"), "a")
        account = ledger.of_utterance(speech())
        assert account.total.unit == "speaker" and account.total.n_releases == 2
        assert account.epsilon(1e-6) == pytest.approx(accounting.gdp_epsilon(1.3, 1e-6))
        assert ledger.of_speaker("a").epsilon(1e-6) == account.epsilon(1e-6)


@pytest.mark.parametrize("bad", [Guarantee.none("no noise"), Guarantee.laplace(1.0, "utterance", sampler="INSECURE")])
def test_one_release_without_protection_leaves_no_bound(path, bad):
    with Ledger(path) as ledger:
        for guarantee in (ONE, bad, ONE):
            ledger.reserve(speech(), guarantee, "a")
        assert ledger.of_utterance(speech()).epsilon() == ledger.of_speaker("a").epsilon(1e-3) == math.inf
        assert ledger.of_utterance(speech()).releases == 3


def test_sums_beyond_floats_are_no_bound(path):
    with Ledger(path) as ledger:
        for _ in range(3):
            ledger.reserve(speech(), Guarantee.pure(1e308, unit="utterance"))
        assert ledger.of_utterance(speech()).epsilon() == math.inf


# what is the same recording


def test_the_same_speech_in_another_file_is_the_same_recording(path, tmp_path):
    wave = np.round(speech(num=16000) * 32768) / 32768
    soundfile.write(tmp_path / "a.wav", wave, 16000)
    soundfile.write(tmp_path / "b.flac", wave, 16000)
    soundfile.write(tmp_path / "c.wav", np.stack([wave, wave], 1), 16000, subtype="FLOAT")
    soundfile.write(tmp_path / "d.aiff", wave + 1e-7, 16000, subtype="PCM_24")
    with Ledger(path) as ledger:
        for name in ("a.wav", "b.flac", "c.wav", "d.aiff"):
            ledger.reserve(read_audio(tmp_path / name), ONE)
        ledger.reserve(read_audio(tmp_path / "a.wav")[:-1], ONE)
    assert sorted(account.releases for account in read(path).utterances.values()) == [1, 4]


def test_no_speech_no_path_no_name_and_no_hash_that_can_be_made_without_the_key(path, tmp_path):
    other = tmp_path / "other.jsonl"
    for file in (path, other):
        with Ledger(file) as ledger:
            ledger.commit(ledger.reserve(speech(), ONE, "Erika Mustermann", "run|interview.wav"))
    raw = path.read_bytes()
    pcm = np.rint(speech() * 32768).astype("<i2").tobytes()
    for hidden in (b"Erika", b"interview", bytes(str(tmp_path), "utf-8"), b"budget", pcm[:8]):
        assert hidden not in raw
    for data in (pcm, speech().tobytes(), b"Erika Mustermann"):
        assert hashlib.sha256(data).hexdigest().encode() not in raw
    assert not set(read(path).utterances) & set(read(other).utterances)
    assert not set(read(path).speakers) & set(read(other).speakers)
    assert path.stat().st_mode & 0o077 == 0 == path.with_name("budget.jsonl.key").stat().st_mode & 0o077


def test_a_name_is_kept_when_it_is_asked_for(path):
    with Ledger(path) as ledger:
        ledger.reserve(speech(), ONE, name="a-01234567")
    assert list(read(path).names.values()) == ["a-01234567"]


# refusals: nothing is written


@pytest.mark.parametrize(
    "samples", [np.zeros(0), np.zeros((2, 5)), np.zeros(5, np.int16), np.array([0.0, np.nan]), [0.0], None]
)
def test_samples_that_cannot_be_counted_are_refused(path, samples):
    with Ledger(path) as ledger:
        before = path.read_bytes()
        with pytest.raises(PrivacyError):
            ledger.reserve(samples, ONE)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("guarantee", "said"),
    [
        (None, "a Guarantee"),
        (1.0, "a Guarantee"),
        (ONE.to_dict(), "a Guarantee"),
        (PitchBox(1.0, 4).release(np.ones((4, 3)), KeyedNoise(0, "u", "f0")).guarantee, "keyed noise"),
        (Guarantee.pure(1.0, unit="utterance", mechanism=b"x"), "cannot be counted"),
        (Guarantee.pure(1.0, unit="utterance", reason=7), "wrong type"),
    ],
)
def test_guarantees_that_cannot_be_counted_are_refused(path, guarantee, said):
    with Ledger(path) as ledger:
        before = path.read_bytes()
        with pytest.raises(PrivacyError, match=said):
            ledger.reserve(speech(), guarantee)
    assert path.read_bytes() == before


@pytest.mark.parametrize("more", [{"speaker": 1}, {"release": b"x"}, {"name": None}])
def test_names_are_strings(path, more):
    with Ledger(path) as ledger, pytest.raises(PrivacyError):
        ledger.reserve(speech(), ONE, **more)


def test_a_closed_ledger_counts_nothing_and_allows_nothing(path):
    ledger = Ledger(path)
    receipt = ledger.reserve(speech(), ONE)
    ledger.close()
    before = path.read_bytes()
    for call in (
        lambda: ledger.reserve(speech(), ONE),
        lambda: ledger.commit(receipt),
        lambda: ledger.of_utterance(speech()),
        lambda: ledger.of_speaker("a"),
        lambda: ledger.head,
    ):
        with pytest.raises(PrivacyError, match="closed"):
            call()
    assert path.read_bytes() == before


def test_a_cap_refuses_before_anything_is_written(path):
    with Ledger(path, [Cap(2.5)]) as ledger:
        ledger.reserve(speech(), ONE)
        ledger.reserve(speech(), ONE)
        before = path.read_bytes()
        with pytest.raises(CapError, match=r"all 3 of the utterance would cost epsilon 3, and 2\.5 is allowed"):
            ledger.reserve(speech(), ONE)
        assert path.read_bytes() == before
        ledger.reserve(speech(1), ONE)
    with Ledger(path, [Cap(3.0)]) as ledger:
        ledger.reserve(speech(), ONE)  # reached, not passed


def test_a_cap_of_the_speaker(path):
    with Ledger(path, [Cap(2.0, "speaker")]) as ledger:
        ledger.reserve(speech(0), ONE, "a")
        ledger.reserve(speech(1), ONE, "a")
        with pytest.raises(CapError, match="of the speaker"):
            ledger.reserve(speech(2), ONE, "a")
        ledger.reserve(speech(2), ONE, "b")
        with pytest.raises(CapError, match="who speaks"):
            ledger.reserve(speech(3), ONE)


def test_a_cap_at_delta_counts_tightly_and_one_without_it_does_not(path):
    gaussian = Guarantee.gdp(0.1, unit="utterance")
    with Ledger(path, [Cap(1.0, delta=1e-5)]) as ledger:
        for _ in range(3):
            ledger.reserve(speech(), gaussian)
        for _ in range(1000):
            try:
                ledger.reserve(speech(), gaussian)
            except CapError:
                break
        num = ledger.of_utterance(speech()).releases
    assert gaussian.repeat(num).epsilon(1e-5) <= 1.0 < gaussian.repeat(num + 1).epsilon(1e-5)
    for guarantee in (gaussian, Guarantee.none("no noise"), Guarantee.laplace(0.1, "utterance", sampler="INSECURE")):
        with Ledger(path, [Cap(1e9)]) as ledger, pytest.raises(CapError, match="inf"):
            ledger.reserve(speech(9), guarantee)


@pytest.mark.parametrize(
    "values", [(0,), (-1,), (math.inf,), (math.nan,), (True,), ("1",), (1, "frame"), (1, "utterance", 1)]
)
def test_caps_that_cannot_be_meant(values):
    with pytest.raises(PrivacyError):
        Cap(*values)


# reserve, draw, commit, release


def test_a_reservation_is_taken_up_again_until_it_is_committed(path):
    with Ledger(path) as ledger:
        receipt = ledger.reserve(speech(), ONE, "a", "run 1|x")
    with Ledger(path) as ledger:
        assert ledger.reserve(speech(), ONE, "a", "run 1|x") == receipt
        assert ledger.of_utterance(speech()).releases == 1
        for other in (("b", ONE), ("a", UTTERANCE)):
            with pytest.raises(LedgerError, match="another guarantee or speaker"):
                ledger.reserve(speech(), other[1], other[0], "run 1|x")
        ledger.commit(receipt)
        with pytest.raises(LedgerError, match="committed before"):
            ledger.commit(receipt)
        ledger.commit(ledger.reserve(speech(), ONE, "a", "run 1|x"))  # drawn again after it had got its name
        ledger.reserve(speech(), ONE, "a", "run 2|x")
        ledger.reserve(speech(1), ONE, "a", "run 1|x")
        ledger.reserve(speech(), ONE, "a")
        ledger.reserve(speech(), ONE, "a")
        assert ledger.of_utterance(speech()).releases == 5
    with Ledger(path, [Cap(0.5)]) as ledger, pytest.raises(CapError):  # a cap set since
        ledger.reserve(speech(), ONE, "a", "run 2|x")


def test_a_commit_needs_a_reservation(path):
    with Ledger(path) as ledger, pytest.raises(LedgerError, match="not reserved"):
        ledger.commit("0" * 64)


# tampering


def rehashed(line, **values):
    """The row changed by someone who knows the format."""
    row = {**json.loads(line), **values}
    row.pop("hash")
    text = json.dumps(row, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"hash":"{digest}"}}'.encode()


def follows(before, line):
    """The row put behind another, with numbers and hashes in order."""
    return rehashed(line, n=json.loads(before)["n"] + 1, prev=json.loads(before)["hash"])


TAMPERINGS = {
    "changed": (3, lambda rows: [*rows[:2], rows[2].replace(b'"time":1', b'"time":2'), *rows[3:]]),
    "changed at the end": (8, lambda rows: [*rows[:7], rows[7].replace(b'"time":1', b'"time":2')]),
    "changed and hashed again": (4, lambda rows: [*rows[:2], rehashed(rows[2], time=5), *rows[3:]]),
    "spaces": (3, lambda rows: [*rows[:2], rows[2].replace(b",", b", ", 1), *rows[3:]]),
    "a key twice": (3, lambda rows: [*rows[:2], rows[2][:-1] + b',"n":2}', *rows[3:]]),
    "removed": (3, lambda rows: [*rows[:2], *rows[3:]]),
    "removed reserve and commit": (4, lambda rows: [*rows[:3], *rows[5:]]),
    "removed header": (1, lambda rows: rows[1:]),
    "moved": (2, lambda rows: [rows[0], rows[2], rows[1], *rows[3:]]),
    "inserted copy": (5, lambda rows: [*rows[:4], rows[3], *rows[4:]]),
    "inserted and hashed": (7, lambda rows: [*rows[:5], follows(rows[4], rows[1]), *rows[5:]]),
    "second header": (9, lambda rows: [*rows, follows(rows[7], rows[0])]),
    "empty line": (4, lambda rows: [*rows[:3], b"", *rows[3:]]),
    "text": (9, lambda rows: [*rows, b"hello"]),
    "carriage returns": (1, lambda rows: [row + b"\r" for row in rows]),
    "less epsilon": (2, lambda rows: [rows[0], rows[1].replace(b"110.0", b"1.0"), *rows[2:]]),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampered_ledger_is_refused_with_its_line(path, name):
    rows = filled(path).split(b"\n")[:-1]
    assert len(rows) == 8
    line, tamper = TAMPERINGS[name]
    path.write_bytes(b"".join(row + b"\n" for row in tamper(rows)))
    before = path.read_bytes()
    for use in (read, Ledger):
        with pytest.raises(LedgerError, match=f"budget.jsonl: line {line}: "):
            use(path)
    assert path.read_bytes() == before


def test_no_byte_can_be_changed(path):
    data = filled(path, 2)
    whole = parse(data)
    rng = random.Random(0)
    for at in range(0, len(data) - 1, 3):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        with pytest.raises(LedgerError, match="line"):
            parse(bytes(changed))
    assert parse(data).head == whole.head


def test_rows_missing_at_the_end_show_by_the_head_only(path):
    data = filled(path)
    short = b"".join(data.splitlines(keepends=True)[:-2])
    assert parse(data).head not in parse(short).heads and parse(short).head in parse(data).heads


def test_a_ledger_that_is_emptied_removed_or_swapped_is_not_begun_again(path, tmp_path):
    filled(path)
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="is empty or gone, but not its key"):
        Ledger(path)
    path.unlink()
    with pytest.raises(LedgerError, match="is empty or gone, but not its key"):
        Ledger(path)
    filled(tmp_path / "other.jsonl")
    (tmp_path / "other.jsonl").rename(path)
    with pytest.raises(LedgerError, match="is not the key of budget.jsonl"):
        Ledger(path)


@pytest.mark.parametrize("how", ["removed", "replaced", "shortened"])
def test_a_ledger_that_changes_hands_while_open_is_not_written(path, how):
    data = filled(path)
    with Ledger(path) as ledger:
        if how == "shortened":
            path.write_bytes(b"".join(data.splitlines(keepends=True)[:-1]))
        elif how == "removed":
            path.unlink()
        else:
            path.with_name("copy").write_bytes(data)
            path.with_name("copy").rename(path)
        with pytest.raises(LedgerError):
            ledger.reserve(speech(), ONE)


@pytest.mark.parametrize("key", [None, b"", b"00", b"zz" * 32, b"00" * 32 + b"\n", b"\xff" * 64])
def test_without_its_key_a_ledger_can_be_read_and_not_written(path, key):
    filled(path)
    file = path.with_name("budget.jsonl.key")
    file.unlink() if key is None else file.write_bytes(key)
    assert read(path).num_rows == 8
    with pytest.raises(LedgerError, match="budget.jsonl.key"):
        Ledger(path)


@pytest.mark.parametrize("place", ["", "no/such/folder", "pipe", "/dev/full"])
def test_what_cannot_be_a_ledger_is_one_line(tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    for use in (read, Ledger):
        with pytest.raises(LedgerError):
            use(tmp_path / place)


def test_links_lead_to_one_ledger(path, tmp_path):
    filled(path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link").symlink_to(path)
    with Ledger(tmp_path / "sub" / "link") as ledger:
        assert ledger.of_speaker("spk0").releases == 2
    assert list((tmp_path / "sub").iterdir()) == [tmp_path / "sub" / "link"]


# kill -9, a full disk, many writers


def test_a_row_that_is_cut_anywhere_never_counts(path):
    data = filled(path)
    *rows, last = data.splitlines(keepends=True)
    start = len(data) - len(last)
    for end in range(start, len(data)):
        book = parse(data[:end])
        assert (book.num_rows, book.torn) == (len(rows), end - start)
    for end in range(start + 1, len(data), 97):
        path.write_bytes(data[:end])
        with Ledger(path) as ledger:
            ledger.reserve(speech(7), ONE)
        assert path.read_bytes()[:start] == data[:start] and read(path).num_rows == len(rows) + 1


def test_200_kills_lose_no_committed_row_and_leave_no_torn_one(path):
    """kill -9 at random moments, with writes of a few bytes, so that they fall amid rows."""
    rng = random.Random(1)
    ledger = Ledger(path)
    synced, torn, killed = set(), 0, 0
    real_write = os.write
    for trial in range(200):
        out, into = os.pipe()
        step = rng.choice((1, 7, 50, 4096))

        def write(into=into, step=step, trial=trial):
            os.write = lambda fd, data: real_write(fd, bytes(data[:step]))
            real_write(into, b"!")
            for i in range(1000):
                receipt = ledger.reserve(speech(i), ONE, f"s{i % 3}", f"{trial}|{i}")
                real_write(into, f"{receipt}+".encode())
                if i % 2:
                    ledger.commit(receipt)
                    real_write(into, f"{receipt}-".encode())

        pid = in_child(write)
        os.close(into)
        assert os.read(out, 1) == b"!"
        time.sleep(rng.uniform(0, 0.012))
        os.kill(pid, signal.SIGKILL)
        killed += exit_code(pid) == -signal.SIGKILL
        said = b""
        while part := os.read(out, 65536):
            said += part
        os.close(out)
        synced |= {said[at : at + 65].decode() for at in range(0, len(said) - 64, 65)}
        torn += not path.read_bytes().endswith(b"\n")
        assert ledger.head and path.read_bytes().endswith(b"\n")  # reads it to its end, cuts off what is torn
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    found = {row["release"] + {"reserve": "+", "commit": "-"}[row["kind"]] for row in rows[1:]}
    assert killed == 200 and synced and synced <= found
    assert len(found) == len(rows) - 1 <= len(synced) + 200  # at most one more per kill: synced, and not told
    assert torn > 0  # else this test shows nothing
    assert read(path).num_rows == len(rows)


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "ftruncate"])
def test_a_kill_while_a_ledger_is_begun_leaves_one_that_can_be_begun(path, call):
    real = getattr(os, call)
    for survive in range(6):

        def begin(survive=survive):
            left = [survive]

            def dying(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return real(*args, **kwargs)

            setattr(os, call, dying)
            Ledger(path)

        code = exit_code(in_child(begin))
        with Ledger(path) as ledger:
            ledger.reserve(speech(), ONE)
        assert read(path).num_rows == 2
        for file in path.parent.iterdir():
            assert file.name in ("budget.jsonl", "budget.jsonl.key", ".budget.jsonl.key.tmp")
            file.unlink()
        if code == 0:
            return
    pytest.fail("never came to its end")


def test_a_full_disk_leaves_no_row_and_allows_nothing(path):
    filled(path)
    before = path.read_bytes()
    for room in (0, 1, 100, 600):

        def fill(room=room):
            ledger = Ledger(path)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, resource.RLIM_INFINITY))
            with pytest.raises(
                LedgerError, match=r"budget.jsonl: cannot be written: File too large; nothing is released"
            ):
                ledger.reserve(speech(), ONE)
            assert path.read_bytes() == before
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            ledger.of_utterance(speech())

        assert exit_code(in_child(fill)) == 0
        assert path.read_bytes() == before
    with Ledger(path) as ledger:
        ledger.reserve(speech(), ONE)


def test_a_full_disk_at_the_beginning_leaves_nothing_that_is_in_the_way(path):
    for room in (0, 100, 250, 300):

        def fill(room=room):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            with Ledger(path) as ledger:
                ledger.reserve(speech(), ONE)

        assert exit_code(in_child(fill)) == 70
    with Ledger(path) as ledger:
        ledger.reserve(speech(), ONE)
    assert read(path).num_rows == 2


@pytest.mark.parametrize("broken", ["write", "write and cut", "fsync"])
def test_a_write_that_fails_anyhow_does_not_count(path, monkeypatch, broken):
    filled(path)
    before = path.read_bytes()
    real = os.write

    def half(fd, data):
        if len(data) > 1 and data[:1] == b"{":
            return real(fd, bytes(data[: len(data) // 2]))
        raise OSError(errno.ENOSPC, "No space left on device")

    def fail(*args):
        raise OSError(errno.EIO, "Input/output error")

    with Ledger(path) as ledger:
        with monkeypatch.context() as patch:
            if broken == "fsync":
                patch.setattr(os, "fsync", fail)
            else:
                patch.setattr(os, "write", half)
            if broken == "write and cut":
                patch.setattr(os, "ftruncate", fail)
            with pytest.raises(LedgerError, match="nothing is released"):
                ledger.reserve(speech(), ONE)
        if broken != "write and cut":
            assert path.read_bytes() == before
        assert read(path).num_rows == 8
        ledger.reserve(speech(), ONE)  # there is room again
    assert read(path).num_rows == 9 and path.read_bytes().startswith(before)


def test_many_writers_and_threads_make_one_chain(path):
    def work(name):
        with Ledger(path) as ledger:
            threads = [threading.Thread(target=some, args=(ledger, f"{name}{i}")) for i in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def some(ledger, name):
        for i in range(10):
            ledger.commit(ledger.reserve(speech(i), ONE, name))

    pids = [in_child(lambda k=k: work(f"p{k}")) for k in range(4)]
    assert [exit_code(pid) for pid in pids] == [0] * 4
    book = read(path)
    assert book.num_rows == 1 + 4 * 2 * 10 * 2 and not book.reserved
    assert {account.releases for account in book.utterances.values()} == {8} and len(book.utterances) == 10
    assert {account.releases for account in book.speakers.values()} == {10} and len(book.speakers) == 8


def test_many_writers_keep_one_cap(path):
    def work():
        with Ledger(path, [Cap(10.0)]) as ledger:
            for _ in range(6):
                try:
                    ledger.reserve(speech(), ONE)
                except CapError:
                    pass

    pids = [in_child(work) for _ in range(4)]
    assert [exit_code(pid) for pid in pids] == [0] * 4
    assert next(iter(read(path).utterances.values())).releases == 10


def test_a_ledger_survives_a_fork_with_its_lock_held(path):
    ledger = Ledger(path)
    with ledger._locked():
        pid = in_child(lambda: time.sleep(30))  # holds a copy of the locked file
    try:
        ledger.reserve(speech(), ONE)
    finally:
        os.kill(pid, signal.SIGKILL)
        exit_code(pid)
    with ledger._mutex:  # of another thread, when the process forks
        assert exit_code(in_child(lambda: ledger.reserve(speech(), ONE))) == 0
    assert ledger.of_utterance(speech()).releases == 2


def test_a_row_is_synced_before_it_is_told(path, monkeypatch):
    calls = []
    real_write, real_sync = os.write, os.fsync
    with Ledger(path) as ledger:
        monkeypatch.setattr(os, "write", lambda *args: (calls.append("write"), real_write(*args))[1])
        monkeypatch.setattr(os, "fsync", lambda *args: (calls.append("sync"), real_sync(*args))[1])
        receipt = ledger.reserve(speech(), ONE)
        calls.append("told")
        ledger.commit(receipt)
        calls.append("told")
    assert calls == ["write", "sync", "told"] * 2


def test_an_empty_book_has_no_total():
    with pytest.raises(PrivacyError, match="no total"):
        _ = Book().account("0" * 64).total
