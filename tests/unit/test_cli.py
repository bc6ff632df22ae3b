"""What every command line shares, the dispatch of commands, and the doctor."""

import subprocess
import sys

import pytest

from dpanon import __version__
from dpanon.cli import ArgumentParser, boolean, doctor, run
from dpanon.cli import main as dispatch
from dpanon.errors import AudioError, ConfigError, DataDirError, StaleError, UsageError


def failing(error):
    def main(argv):
        raise error

    return main


def code_of(main, argv=()):
    with pytest.raises(SystemExit) as stop:
        run(main, list(argv))
    return stop.value.code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AudioError("a.wav: no samples"), 1),
        (DataDirError("data/x: no wav.scp"), 1),
        (ConfigError("bn.yaml: lr: missing"), 2),
        (UsageError("what?"), 2),
        (StaleError("exp/a was made from other inputs"), 3),
    ],
)
def test_expected_errors_are_one_line_and_their_exit_code(capsys, error, code):
    assert code_of(failing(error)) == code
    assert capsys.readouterr().err == f"error: {error}\n"


def test_privacy_errors_are_expected(capsys):
    errors = pytest.importorskip("dpanon.privacy.errors")
    assert code_of(failing(errors.PrivacyError("epsilon must be > 0"))) == 1
    assert capsys.readouterr().err == "error: epsilon must be > 0\n"


def test_a_file_error_names_the_file(capsys, tmp_path):
    def main(argv):
        (tmp_path / "none").read_text()

    assert code_of(main) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/none: No such file or directory\n"


def test_an_error_of_many_lines_is_still_one(capsys):
    assert code_of(failing(AudioError("a.wav:\n  bad"))) == 1
    assert capsys.readouterr().err == "error: a.wav: bad\n"


def test_debug_shows_the_trace(capsys):
    seen = []

    def main(argv):
        seen.append(argv)
        raise AudioError("bad")

    assert code_of(main, ["--debug", "true", "a.wav"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert code_of(main, ["--debug", "false", "a.wav"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert seen == [["a.wav"], ["a.wav"]]
    assert code_of(main, ["--debug", "a.wav"]) == 2


def test_debug_after_two_dashes_is_an_argument():
    seen = []
    assert code_of(seen.append, ["--", "--debug", "true"]) == 0
    assert seen == [["--", "--debug", "true"]]


def test_a_bug_shows_its_trace(capsys):
    assert code_of(failing(KeyError("x"))) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: KeyError: 'x'\n")


def test_interrupt_is_130(capsys):
    assert code_of(failing(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_exit_code_of_main_is_kept():
    assert code_of(lambda argv: None) == 0
    assert code_of(lambda argv: 3) == 3


def parser():
    parser = ArgumentParser(prog="x")
    parser.add_argument("--epsilon-bn", type=float)
    parser.add_argument("--resume", type=boolean)
    parser.add_argument("input", nargs="?")
    return parser


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--epsilon-bm", "1"], "unknown option --epsilon-bm; did you mean '--epsilon-bn'?"),
        (["--epsilon", "1"], "unknown option --epsilon"),  # no abbreviations
        (["a", "b"], "unexpected argument 'b'"),
        (["--resume", "yes"], "expected true or false, got 'yes'"),
    ],
)
def test_command_line_mistakes_are_exit_2(capsys, argv, message):
    with pytest.raises(SystemExit) as stop:
        parser().parse_args(argv)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_booleans_are_words():
    assert parser().parse_args(["--resume", "true"]).resume is True
    assert parser().parse_args(["--resume", "false"]).resume is False


def test_dispatch(capsys):
    assert code_of(dispatch.main, ["--version"]) == 0
    assert capsys.readouterr().out == f"dpanon {__version__}\n"
    assert code_of(dispatch.main, []) == 2
    assert code_of(dispatch.main, ["anonymise"]) == 2
    assert "did you mean 'anonymize'?" in capsys.readouterr().err


def test_help_does_not_wait_for_torch():
    code = "import sys; from dpanon.cli.main import main; main(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_doctor_says_what_is_missing_and_what_to_type(capsys, monkeypatch):
    absent = doctor.Need("no-such-package", "nothing", ("mini",), "no_such_package")
    monkeypatch.setattr(doctor, "NEEDS", (absent, doctor.Need("numpy", "arrays", ("mini",), "numpy")))
    assert doctor.main(["--for", "mini"]) == 1
    out = capsys.readouterr().out
    assert "MISSING  no-such-package" in out
    assert out.rstrip().endswith("pip install -c tools/constraints/pins.txt no-such-package")
    assert doctor.main(["--for", "anonymize"]) == 0
    assert "not needed for --for anonymize" in capsys.readouterr().out.lower()


def test_doctor_finds_a_package_that_does_not_load(monkeypatch, tmp_path):
    (tmp_path / "broken_module.py").write_text("raise OSError('libcudart.so: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    version, problem = doctor.find(doctor.Need("x", "y", (), "broken_module"))
    assert version is None
    assert problem.startswith("broken: libcudart")
