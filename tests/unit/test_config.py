"""YAML -> dataclass: what is right is read exactly, what is wrong is named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from dpanon.config import load_config, save_config
from dpanon.errors import ConfigError


@dataclass(frozen=True)
class Privacy:
    epsilon: float

    def __post_init__(self):
        if not 0 < self.epsilon < float("inf"):
            raise ValueError(f"epsilon must be finite and > 0, got {self.epsilon}")


@dataclass(frozen=True)
class Layer:
    size: int = 256
    kind: Literal["tdnn", "cnn"] = "tdnn"


@dataclass(frozen=True)
class Config:
    privacy: Privacy
    layer: Layer = field(default_factory=Layer)
    layers: tuple[Layer, ...] = ()
    lr: float = 1e-3
    epochs: int = 3
    resume: bool = False
    name: str = "bn"
    pool: Path = Path("data/pool")
    limit: int | None = None
    shape: tuple[int, int] = (1, 2)
    weights: Mapping[str, float] = field(default_factory=dict)


@pytest.fixture
def load(tmp_path):
    def load(text, *overrides):
        path = tmp_path / "bn.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(Config, path, overrides)

    return load


def test_values_nest_and_defaults_fill(load):
    config = load("privacy: {epsilon: 1}\nlr: 1e-4\nlayers: [{size: 8}, {kind: cnn}]\nweights: {asr: 0.5}\n")
    assert config == Config(privacy=Privacy(1.0), lr=1e-4, layers=(Layer(8), Layer(kind="cnn")), weights={"asr": 0.5})
    assert isinstance(config.privacy.epsilon, float)


def test_overrides_win_and_make_sections(load):
    config = load("epochs: 5\n", "privacy.epsilon=2", "layer.size=16", "limit=7", "resume=true", "shape=[3, 4]")
    assert (config.privacy.epsilon, config.layer.size, config.limit) == (2.0, 16, 7)
    assert (config.resume, config.shape, config.epochs) == (True, (3, 4), 5)


def test_no_file_is_the_defaults():
    assert load_config(Layer, None) == Layer()
    assert load_config(Layer, None, ["size=1"]) == Layer(1)


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("privacy: {epsilom: 1.0}", (), "bn.yaml: privacy: unknown key 'epsilom'; did you mean 'epsilon'?"),
        ("privacy: {epsilon: 1}\nepcohs: 3", (), "unknown key 'epcohs'; did you mean 'epochs'?"),
        ("privacy: {epsilon: 1}", ("epcohs=3",), "--set epcohs=3: unknown key 'epcohs'; did you mean 'epochs'?"),
        ("epochs: 3", (), "privacy: missing; give it in the file or with --set privacy=VALUE"),
        ("privacy: {}", (), "privacy.epsilon: missing"),
        ("privacy: 1.0", (), "privacy: expected a section (epsilon), found float 1.0"),
        ("privacy: {epsilon: yes}", (), "privacy.epsilon: expected a number, found bool True"),
        ("privacy: {epsilon: one}", (), "privacy.epsilon: expected a number, found str 'one'"),
        ("privacy: {epsilon: .inf}", (), "privacy: epsilon must be finite and > 0, got inf"),
        ("privacy: {epsilon: inf}", (), "privacy: epsilon must be finite and > 0, got inf"),
        ("privacy: {epsilon: nan}", (), "privacy.epsilon: expected a number, found str 'nan'"),
        ("privacy: {epsilon: 1}\nepochs: 3.5", (), "epochs: expected a whole number, found float 3.5"),
        ("privacy: {epsilon: 1}\nepochs: true", (), "epochs: expected a whole number, found bool True"),
        ("privacy: {epsilon: 1}\nresume: 1", (), "resume: expected true or false, found int 1"),
        ("privacy: {epsilon: 1}\nname: 3", (), "name: expected text, found int 3"),
        ("privacy: {epsilon: 1}\nlr:", (), "lr: expected a number, found nothing"),
        ("privacy: {epsilon: 1}\nshape: [1]", (), "shape: expected a list of 2"),
        ("privacy: {epsilon: 1}\nlayer: {kind: rnn}", (), "layer.kind: expected 'tdnn' or 'cnn', found str 'rnn'"),
        ("privacy: {epsilon: 1}\nlayers: [{sise: 3}]", (), "layers[0]: unknown key 'sise'; did you mean 'size'?"),
        ("privacy: {epsilon: 1}\nlr: 1\nlr: 2", (), "line 3: key 'lr' is given twice"),
        ("privacy: {epsilon: 1", (), "bn.yaml: not YAML: line"),
        ("- 1", (), "expected KEY: VALUE lines"),
        ("privacy: {epsilon: 1}", ("lr",), "--set lr: expected KEY=VALUE"),
        ("privacy: {epsilon: 1}", ("lr=fast",), "--set lr=fast: lr: expected a number, found str 'fast'"),
        ("privacy: {epsilon: 1}\nlr: 1", ("lr.x=1",), "--set lr.x=1: lr is a value, not a section"),
    ],
)
def test_mistakes_are_named(load, text, overrides, message):
    with pytest.raises(ConfigError) as error:
        load(text, *overrides)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_yaml_cannot_run_code(load):
    with pytest.raises(ConfigError):
        load("privacy: {epsilon: 1}\nname: !!python/object/apply:os.getcwd []")


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="none.yaml: no such file"):
        load_config(Config, tmp_path / "none.yaml")


def test_saved_config_is_read_as_the_same(load, tmp_path):
    config = load("privacy: {epsilon: 0.1}\nlr: 1e-5\nlayers: [{size: 8}]\npool: a b/ü\n")
    path = tmp_path / "exp" / "config.yaml"
    save_config(config, path)
    assert load_config(Config, path) == config
    assert [p.name for p in path.parent.iterdir()] == ["config.yaml"]
