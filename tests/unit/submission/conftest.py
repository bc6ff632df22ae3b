"""A LibriSpeech of tones, and a miniature challenge in the organisers' form made of it."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

ROOT = Path(__file__).resolve().parents[3]


def script(name):
    """A script of local/vpc as a module; they import one another as programs do."""
    if str(ROOT / "local" / "vpc") not in sys.path:
        sys.path.insert(0, str(ROOT / "local" / "vpc"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "local" / "vpc" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="session")
def scripts():
    return {name: script(name) for name in ("prepare", "make_trials", "make_tree")}


@pytest.fixture(scope="session")
def librispeech(tmp_path_factory):
    """test-other: 4 women, 4 men with 6 utterances each; train-clean-100: 6 readers with 2."""
    root = tmp_path_factory.mktemp("a b ü") / "LibriSpeech"
    rng = np.random.default_rng(0)
    lines = []
    for part, readers, num in (("test-other", range(100, 108), 6), ("train-clean-100", range(10, 16), 2)):
        for reader in readers:
            lines.append(f"{reader} | {'FM'[reader % 2]} | {part} | 1 | Somebody\n")
            folder = root / part / str(reader) / "1"
            folder.mkdir(parents=True)
            texts = []
            for k in range(num):
                samples = rng.uniform(-0.3, 0.3, 4800 + 160 * int(rng.integers(0, 20)))
                soundfile.write(folder / f"{reader}-1-{k:04d}.flac", samples, 16000)
                texts.append(f"{reader}-1-{k:04d} WORD NUMBER {k}\n")
            (folder / f"{reader}-1.trans.txt").write_text("".join(texts))
    (root / "SPEAKERS.TXT").write_text("; a comment\n" + "".join(lines))
    return root


@pytest.fixture
def make_tree(scripts, librispeech, tmp_path):
    """challenge -> the organisers' data/ of a miniature."""

    def made(challenge, *options):
        tree = tmp_path / f"tree {challenge}"
        arguments = ["--challenge", challenge, "--part", "test-other", "--per-speaker", "6", *options]
        scripts["make_tree"].main([*arguments, str(librispeech), str(tree)])
        return tree / "data"

    return made


@pytest.fixture
def prepare(scripts):
    def run(challenge, source, out, *options):
        options = options or ("--partial", "true", "--allow-pipes", "true")
        scripts["prepare"].main(["--challenge", challenge, *options, str(source), str(out)])
        return out

    return run
