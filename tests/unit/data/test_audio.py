"""Every kind of file of the list "bad input": read to the right length, or refused with one line that names it."""

import os
import shutil
import struct
import tracemalloc
import wave

import numpy as np
import pytest
import soundfile

from dpanon.data import audio
from dpanon.data.audio import num_frames, num_samples, read_audio, read_pipe, write_wav
from dpanon.errors import AudioError

needs_sox = pytest.mark.skipif(shutil.which("sox") is None, reason="sox is not installed")


def tone(rate=16000, seconds=0.5, hz=440.0, level=0.25):
    return (level * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


def refused(path, *words):
    with pytest.raises(AudioError) as caught:
        read_audio(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    for word in words:
        assert word in message
    with pytest.raises(AudioError):
        num_samples(path)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000, 192000])
def test_any_rate_becomes_16_khz_of_the_exact_length(tmp_path, rate):
    """A tone keeps its pitch, level and phase; the length is the rounded ratio."""
    path = tmp_path / "tone.wav"
    samples = tone(rate, seconds=0.5)[:-3]
    soundfile.write(path, samples, rate, subtype="FLOAT")
    found = read_audio(path)
    assert found.dtype == np.float32
    assert len(found) == num_samples(path) == (len(samples) * 16000 + rate // 2) // rate
    expected = tone(16000, seconds=0.5)[: len(found)]
    assert np.abs(found - expected)[800:-800].max() < 2e-3


def test_resampling_does_not_depend_on_the_block(tmp_path, monkeypatch):
    path = tmp_path / "noise.wav"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, 50_000), 44100)
    whole = read_audio(path)
    monkeypatch.setattr(audio, "BLOCK", 1777)
    np.testing.assert_allclose(read_audio(path), whole, atol=1e-6)


@pytest.mark.parametrize("channels", [2, 6])
def test_channels_are_averaged_chosen_or_refused(tmp_path, channels):
    path = tmp_path / "many.wav"
    data = np.stack([tone(hz=200 * (c + 1), level=0.1) for c in range(channels)], axis=1)
    soundfile.write(path, data, 16000, subtype="FLOAT")
    np.testing.assert_allclose(read_audio(path), data.mean(1), atol=1e-6)
    np.testing.assert_allclose(read_audio(path, channel=1), data[:, 1], atol=1e-6)
    with pytest.raises(AudioError, match=f"has {channels} channels; choose one"):
        read_audio(path, channel="error")
    with pytest.raises(AudioError, match=f"no channel {channels}"):
        read_audio(path, channel=channels)


@pytest.mark.parametrize(
    ("suffix", "options", "tolerance"),
    [
        (".wav", {"subtype": "PCM_U8"}, 1 / 100),
        (".wav", {"subtype": "PCM_16"}, 1 / 30000),
        (".wav", {"subtype": "PCM_24"}, 1e-6),
        (".wav", {"subtype": "PCM_32"}, 1e-6),
        (".wav", {"subtype": "FLOAT"}, 1e-7),
        (".wav", {"subtype": "DOUBLE"}, 1e-7),
        (".wav", {"subtype": "ULAW"}, 1 / 60),
        (".wav", {"subtype": "ALAW"}, 1 / 60),
        (".flac", {"subtype": "PCM_16"}, 1 / 30000),
        (".flac", {"subtype": "PCM_24"}, 1e-6),
        (".ogg", {"subtype": "VORBIS"}, None),
        (".mp3", {}, None),
        (".aiff", {}, 1 / 30000),
        (".au", {}, 1 / 30000),
        (".w64", {}, 1 / 30000),
    ],
)
def test_encodings(tmp_path, suffix, options, tolerance):
    path = tmp_path / f"x{suffix}"
    soundfile.write(path, tone(), 16000, **options)
    found = read_audio(path)
    assert len(found) == num_samples(path)
    if tolerance:
        assert np.abs(found - tone()).max() < tolerance
    else:  # lossy: the same energy
        assert abs(len(found) - len(tone())) < 2400
        assert np.isclose(np.sqrt(np.mean(found**2)), np.sqrt(np.mean(tone() ** 2)), rtol=0.15)


def test_opus_is_read(tmp_path):
    path = tmp_path / "x.opus"
    soundfile.write(path, tone(48000), 48000, format="OGG", subtype="OPUS")
    assert abs(len(read_audio(path)) - 8000) <= 320


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(16000),
        np.full(16000, 0.5),
        np.sign(tone(seconds=1.0)),
        np.random.default_rng(0).normal(0, 0.2, 16000),
    ],
    ids=["silence", "dc", "clipped", "noise"],
)
def test_what_is_not_speech_is_read_all_the_same(tmp_path, samples):
    path = tmp_path / "x.wav"
    soundfile.write(path, samples, 16000, subtype="FLOAT")
    assert read_audio(path).shape == (16000,)


def test_a_missing_empty_or_forbidden_file_is_refused(tmp_path):
    refused(tmp_path / "none.wav", "cannot be read", "No such file")
    refused(tmp_path, "cannot be read", "directory")
    (tmp_path / "empty.wav").touch()
    refused(tmp_path / "empty.wav", "empty")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    soundfile.write(tmp_path / "x.wav", tone(), 16000)
    (tmp_path / "x.wav").chmod(0)
    refused(tmp_path / "x.wav", "Permission denied")


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".raw", ".ogg", ""])
def test_text_with_another_name_is_refused(tmp_path, suffix):
    path = tmp_path / f"letter{suffix}"
    path.write_text("Dear reader, this is not a sound.\n" * 100)
    refused(path, "not a readable audio file")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinite_samples_are_refused(tmp_path, bad):
    samples = tone(seconds=1.0)
    samples[12345] = bad
    soundfile.write(tmp_path / "x.wav", samples, 16000, subtype="FLOAT")
    refused(tmp_path / "x.wav", "NaN or infinite")


def test_integers_in_a_float_file_are_refused(tmp_path):
    soundfile.write(tmp_path / "x.wav", tone() * 32768, 16000, subtype="FLOAT")
    refused(tmp_path / "x.wav", "full scale is 1.0")


@pytest.mark.parametrize("length", [0, 1, 320, 400, 1599])
def test_less_than_a_tenth_of_a_second_is_refused(tmp_path, length):
    soundfile.write(tmp_path / "x.wav", np.zeros(length), 16000)
    refused(tmp_path / "x.wav", "no samples" if length == 0 else "at least 0.1 s")


def test_a_tenth_of_a_second_is_read(tmp_path):
    soundfile.write(tmp_path / "x.wav", np.zeros(1600), 16000)
    assert len(read_audio(tmp_path / "x.wav")) == 1600


@pytest.mark.parametrize("rate", [4000, 400_000])
def test_rates_beyond_the_limits_are_refused(tmp_path, rate):
    soundfile.write(tmp_path / "x.wav", np.zeros(rate), rate)
    refused(tmp_path / "x.wav", "sample rate", str(rate))


def wav_bytes(tmp_path):
    soundfile.write(tmp_path / "good.wav", tone(seconds=1.0), 16000)
    return (tmp_path / "good.wav").read_bytes()


@pytest.mark.parametrize("announced", [0x7FFFFFFF, 0x7FFFF000, 0xFFFFFFFF])
def test_the_header_of_a_pipe_does_not_count(tmp_path, announced):
    """sox and others write 2^31-1 or so where they cannot know the length."""
    data = bytearray(wav_bytes(tmp_path))
    data[40:44] = struct.pack("<I", announced)
    (tmp_path / "x.wav").write_bytes(data)
    assert num_samples(tmp_path / "x.wav") == len(read_audio(tmp_path / "x.wav")) == 16000


def test_cut_short_wav_is_as_long_as_what_is_there(tmp_path, caplog):
    (tmp_path / "x.wav").write_bytes(wav_bytes(tmp_path)[:20001])
    assert len(read_audio(tmp_path / "x.wav")) == (20001 - 44) // 2
    assert "announces 32000 bytes" in caplog.text


def test_a_wav_that_is_only_a_header_is_refused(tmp_path):
    data = wav_bytes(tmp_path)
    (tmp_path / "x.wav").write_bytes(data[:44])
    refused(tmp_path / "x.wav", "no samples")
    (tmp_path / "y.wav").write_bytes(data[:30])
    refused(tmp_path / "y.wav", "not a readable audio file")


@pytest.mark.parametrize("announced", [0, 8000])
def test_a_header_that_would_drop_samples_is_refused(tmp_path, announced):
    data = bytearray(wav_bytes(tmp_path))
    data[40:44] = struct.pack("<I", announced)
    (tmp_path / "x.wav").write_bytes(data)
    refused(tmp_path / "x.wav", "wrong header")


def test_chunks_and_padding_after_the_samples_are_no_samples(tmp_path):
    data = wav_bytes(tmp_path)
    (tmp_path / "x.wav").write_bytes(data + b"LIST" + struct.pack("<I", 4) + b"INFO" + bytes(100))
    assert num_samples(tmp_path / "x.wav") == 16000


def test_damaged_flac_is_refused(tmp_path):
    path = tmp_path / "x.flac"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, 48000), 16000)
    path.write_bytes(path.read_bytes()[:40_000])
    refused(path, "damaged")


@pytest.mark.parametrize("folder", ["a b", "ü", "日本", "it's; $HOME"])
def test_paths_with_blanks_and_any_letters(tmp_path, folder):
    path = tmp_path / folder / f"{folder}.wav"
    path.parent.mkdir()
    write_wav(path, tone())
    assert len(read_audio(path)) == 8000


def test_long_files_of_many_channels_need_little_memory(tmp_path):
    """Two minutes of 6 channels at 48 kHz are 138 MB as floats; 30 minutes scale as the result does."""
    path = tmp_path / "x.wav"
    with soundfile.SoundFile(path, "w", 48000, 6) as file:
        for _ in range(120):
            file.write(np.zeros((48000, 6), np.int16))
    tracemalloc.start()
    samples = read_audio(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(samples) == 120 * 16000
    assert peak < 3 * samples.nbytes + 40e6


def test_write_and_read_give_back_every_16_bit_value(tmp_path):
    values = np.arange(-32768, 32768).astype(np.float32) / 32768
    write_wav(tmp_path / "x.wav", values)
    np.testing.assert_array_equal(read_audio(tmp_path / "x.wav"), values)


def test_a_written_file_is_44_bytes_of_header_and_samples(tmp_path):
    write_wav(tmp_path / "x.wav", tone())
    assert (tmp_path / "x.wav").stat().st_size == 44 + 2 * 8000
    with wave.open(str(tmp_path / "x.wav")) as file:
        assert file.getparams()[:4] == (1, 2, 16000, 8000)
    assert os.listdir(tmp_path) == ["x.wav"]


def test_writing_clips_and_never_wraps(tmp_path):
    write_wav(tmp_path / "x.wav", np.repeat([2.0, -2.0, 1.0, -1.0], 800))
    found = read_audio(tmp_path / "x.wav")[::800]
    np.testing.assert_allclose(found, [1, -1, 1, -1], atol=1 / 30000)


@pytest.mark.parametrize("bad", [np.array([0.0, np.nan]), np.array([np.inf]), np.zeros((2, 4)), np.zeros(4, np.int16)])
def test_what_cannot_be_meant_is_not_written(tmp_path, bad):
    with pytest.raises(AudioError, match="x.wav"):
        write_wav(tmp_path / "x.wav", bad)
    assert not os.listdir(tmp_path)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    write_wav(tmp_path / "x.wav", tone())
    before = (tmp_path / "x.wav").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audio.os, "replace", full)
    with pytest.raises(AudioError, match="No space left"):
        write_wav(tmp_path / "x.wav", 0 * tone())
    assert os.listdir(tmp_path) == ["x.wav"] and (tmp_path / "x.wav").read_bytes() == before


@needs_sox
def test_a_pipe_is_read_and_its_words_are_shown(tmp_path, capfd):
    write_wav(tmp_path / "a b.wav", tone())
    assert len(read_pipe(f"echo hello >&2; sox '{tmp_path}/a b.wav' -t wav - |")) == 8000
    assert "hello" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["cat '{wav}'; exit 3", "false | cat '{wav}'", "no-such-program-here"])
def test_a_pipe_that_fails_is_refused_even_if_samples_came(tmp_path, command):
    write_wav(tmp_path / "x.wav", tone())
    with pytest.raises(AudioError, match="pipe failed with exit code"):
        read_pipe(command.format(wav=tmp_path / "x.wav"))


def test_a_pipe_that_says_nothing_is_refused():
    with pytest.raises(AudioError, match="true |: the file is empty"):
        read_pipe("true |")


def test_reading_a_file_never_runs_a_command(tmp_path):
    with pytest.raises(AudioError, match="No such file"):
        read_audio(f"touch {tmp_path}/ran |")
    assert not os.listdir(tmp_path)


def test_tags_of_the_source_do_not_reach_the_result(tmp_path):
    with soundfile.SoundFile(tmp_path / "in.flac", "w", 16000, 1) as file:
        file.title, file.artist = "My voice", "Ada Example"
        file.write(tone())
    write_wav(tmp_path / "out.wav", read_audio(tmp_path / "in.flac"))
    assert b"Ada" not in (tmp_path / "out.wav").read_bytes()


@pytest.mark.parametrize(("samples", "frames"), [(0, 0), (79, 0), (80, 1), (160, 1), (239, 1), (240, 2), (16000, 100)])
def test_num_frames_is_that_of_kaldi(samples, frames):
    assert num_frames(samples) == frames
