"""Names and options of releases: what recipes call them, and what each is made with."""

import pytest

from dpanon.cli.list_releases import main
from dpanon.errors import UsageError


def lines(capsys, *arguments):
    main(list(arguments))
    return capsys.readouterr().out.splitlines()


def test_each_system_takes_the_parameters_of_its_own_noise(capsys):
    noise = ("--epsilon-bn", "100 10", "--epsilon-f0", "10", "--epsilon-token", "", "--mu-f0", "2")
    assert lines(capsys, "--system", "plain dp token", *noise) == [
        "plain _plain",
        "dp _dp_f0eps10_bneps100 --epsilon-bn 100 --epsilon-f0 10",
        "dp _dp_f0eps10_bneps10 --epsilon-bn 10 --epsilon-f0 10",
        "token _token_f0mu2_tokeneps14 --epsilon-token 14 --mu-f0 2",
    ]


def test_voxlet_takes_what_is_given(capsys):
    assert lines(capsys, "--system", "voxlet") == ["voxlet _voxlet"]
    assert lines(capsys, "--system", "voxlet", "--mu-f0", "1") == ["voxlet _voxlet_f0mu1 --mu-f0 1"]


def test_draws_are_releases_of_their_own(capsys):
    assert lines(capsys, "--system", "plain dp", "--epsilon-bn", "10", "--epsilon-f0", "10", "--draws", "2") == [
        "plain _plain",
        "plain _plain_draw2",
        "dp _dp_f0eps10_bneps10 --epsilon-bn 10 --epsilon-f0 10",
        "dp _dp_f0eps10_bneps10_draw2 --epsilon-bn 10 --epsilon-f0 10",
    ]
    with pytest.raises(UsageError, match="--draws must be 1 or more, got 0"):
        main(["--system", "plain", "--draws", "0"])


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "ten"])
def test_no_noise_without_a_meaning(bad):
    with pytest.raises(UsageError, match="--epsilon-bn must be finite and > 0"):
        main(["--system", "dp", "--epsilon-bn", bad])


def test_an_unknown_system_is_named():
    with pytest.raises(UsageError, match="unknown system 'mcadams'"):
        main(["--system", "plain mcadams"])
