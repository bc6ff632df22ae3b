"""Train the auto-encoder that hides the speaker's sex: <data-dir>/xvector.scp and spk2gender -> <out-dir>.

Called by steps/train_gender.sh. Several data directories are trained on together.
"""

import json
from pathlib import Path

import numpy as np
import torch

from dpanon.anonymize.pretrained import save_network
from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.embeddings import read_set, sexes
from dpanon.models.gender_autoencoder import GenderAutoencoder
from dpanon.train.gender import TrainGenderConfig, train_gender

NAN = float("nan")  # of a training that was complete before: the network is the same, its figures were said then


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    config = load_config(TrainGenderConfig, args.config, args.set)
    sets = [read_set(path) for path in args.data]
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    labels = np.concatenate([sexes(data) for data, _ in sets])
    figures = train_gender(config, np.concatenate([vectors for _, vectors in sets]), labels, args.out)
    model = GenderAutoencoder(config.model)
    model.load_state_dict(torch.load(args.out / "model.pt", weights_only=True))
    facts = {"epsilon_train": f"{config.epsilon:g}", "embeddings": str(len(labels))}
    save_network(model, args.out / "gender.safetensors", facts)
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(
        f"{args.out}: {config.loop.steps} steps on {len(labels)} embeddings, 1 - cosine "
        f"{figures.get('reconstruction', NAN):.3f}, adversary right in {100 * figures.get('accuracy', NAN):.0f} %, "
        f"radius {figures['radius']:.3g}"
    )


if __name__ == "__main__":
    run(main)
