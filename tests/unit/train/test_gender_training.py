"""What the gender recipe asks its training for."""

import re
from pathlib import Path

import pytest

from dpanon.config import load_config
from dpanon.train.gender import TrainGenderConfig

RECIPE = Path(__file__).parents[3] / "egs/voxceleb/gender"
RUN = (RECIPE / "run.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("epsilon", re.search(r'^epsilon_train="(.*?)"', RUN, re.MULTILINE)[1].split())
def test_every_default_of_the_recipe_is_a_number_to_the_training(epsilon):
    config = load_config(TrainGenderConfig, RECIPE / "conf/gender.yaml", [f"epsilon={epsilon}"])
    assert config.epsilon == float(epsilon)
