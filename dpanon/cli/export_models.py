"""Trained networks -> a folder of safetensors as dpanon/anonymize/pretrained is one. Called by steps/export_models.sh.

    python3 -m dpanon.cli.export_models --bn plain=exp/bn_plain --synth plain=exp/synth_plain \\
        --f0 eps10=exp/f0_eps10 --targets exp/targets --out models
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from dpanon.anonymize.pretrained import save_network
from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, save_config
from dpanon.errors import UsageError
from dpanon.models.bottleneck import Bottleneck
from dpanon.models.intonation import Intonation
from dpanon.models.pitch_autoencoder import PitchAutoencoder
from dpanon.synth.choose import make_synthesizer
from dpanon.train.bottleneck import TrainBottleneckConfig
from dpanon.train.intonation import TrainIntonationConfig
from dpanon.train.loop import save_atomically
from dpanon.train.pitch import TrainPitchConfig
from dpanon.train.synth import TrainSynthConfig


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    for kind in ("bn", "synth", "f0", "intonation"):
        parser.add_argument(f"--{kind}", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--targets", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    load = {"bn": load_bottleneck, "synth": load_synth, "f0": load_pitch, "intonation": load_intonation}
    for kind, make in load.items():
        for item in getattr(args, kind):
            name, equals, directory = item.partition("=")
            if not equals:
                raise UsageError(f"--{kind} {item}: expected NAME=DIR, such as eps10=exp/{kind}_eps10")
            path = args.out / f"{kind}_{name}.safetensors"
            figures = json.loads((Path(directory) / "figures.json").read_text())
            facts = {"figures": json.dumps(figures), "training": (Path(directory) / "config.yaml").read_text()}
            save_network(make(Path(directory)), path, facts)
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    if args.targets is not None:
        for name in ("targets.safetensors", "contour.json"):
            shutil.copyfile(args.targets / name, args.out / name)


def load_bottleneck(directory: Path) -> Bottleneck:
    """The extractor of a training directory."""
    network = Bottleneck(load_config(TrainBottleneckConfig, directory / "config.yaml").model)
    saved = _state(directory)["both"]
    network.load_state_dict({k.removeprefix("model."): v for k, v in saved.items() if k.startswith("model.")})
    return network


def save_bottleneck(network: Bottleneck, came_from: Path, directory: Path) -> None:
    """An extractor that was trained on together with a synthesizer, as a training directory of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    config = load_config(TrainBottleneckConfig, came_from / "config.yaml")
    save_config(replace(config, model=network.config), directory / "config.yaml")
    shutil.copyfile(came_from / "figures.json", directory / "figures.json")
    state = {f"model.{name}": value for name, value in network.state_dict().items()}
    save_atomically({"state": {"both": state}}, directory / "checkpoint.pt")


def load_synth(directory: Path) -> nn.Module:
    """The synthesizer of a training directory, whichever it is."""
    network = make_synthesizer(load_config(TrainSynthConfig, directory / "config.yaml").network)
    network.load_state_dict(_state(directory)["model"])
    return network


def load_pitch(directory: Path) -> PitchAutoencoder:
    network = PitchAutoencoder(load_config(TrainPitchConfig, directory / "config.yaml").model)
    saved = torch.load(directory / "model.pt", map_location="cpu", weights_only=True)
    network.gains, network.gain_scales = torch.zeros_like(saved["gains"]), torch.zeros_like(saved["gain_scales"])
    network.load_state_dict(saved)
    return network


def load_intonation(directory: Path) -> Intonation:
    network = Intonation(load_config(TrainIntonationConfig, directory / "config.yaml").model)
    network.load_state_dict(torch.load(directory / "model.pt", map_location="cpu", weights_only=True))
    return network


def _state(directory: Path) -> dict:
    return torch.load(directory / "checkpoint.pt", map_location="cpu", weights_only=True)["state"]


if __name__ == "__main__":
    run(main)
