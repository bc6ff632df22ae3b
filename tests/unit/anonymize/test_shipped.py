"""The shipped weights serve every system at any epsilon, and stay small."""

import pytest

from dpanon.anonymize import content
from dpanon.anonymize.pretrained import SHIPPED, load_system
from dpanon.anonymize.systems import SYSTEMS, check_parameters

NONE = {"epsilon_bn": None, "epsilon_token": None, "epsilon_f0": None, "mu_f0": None}


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "voxlet"])
@pytest.mark.parametrize("epsilon_bn", [100.0, 3.0])
def test_every_system_is_put_together(monkeypatch, name, epsilon_bn):
    monkeypatch.setattr(content, "WhisperEncoder", lambda: None)  # of another package
    given = NONE | ({"epsilon_bn": epsilon_bn} if name in ("dp", "dp_bn", "dp_contour") else {})
    noise = check_parameters(name, given, defaults=True)
    system = load_system(name, **noise)
    assert system.name == name and system.promise(100, "exact").unit == "utterance"
    if "epsilon_bn" in noise:
        assert system.content.mechanism.epsilon == epsilon_bn
        assert system.content.guarantee(100, "exact").to_unit("utterance").epsilon() == 100 * epsilon_bn


def test_together_they_are_small():
    assert sum(file.stat().st_size for file in SHIPPED.glob("*")) <= 40e6
