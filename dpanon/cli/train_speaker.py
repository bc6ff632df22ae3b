"""Train the variational auto-encoder of speaker embeddings: <data-dir>/xvector.scp -> <out-dir>.

Called by steps/train_speaker.sh. Several data directories are trained on together; no labels are needed.
"""

import json
from pathlib import Path

import numpy as np
import torch

from dpanon.anonymize.pretrained import save_network
from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.embeddings import read_set
from dpanon.models.speaker_vae import SpeakerVae
from dpanon.train.speaker import TrainSpeakerConfig, train_speaker


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    config = load_config(TrainSpeakerConfig, args.config, args.set)
    vectors = np.concatenate([read_set(path)[1] for path in args.data])
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    figures = train_speaker(config, vectors, args.out)
    model = SpeakerVae(config.model)
    model.load_state_dict(torch.load(args.out / "model.pt", weights_only=True))
    facts = {"embeddings": str(len(vectors)), "figures": json.dumps(figures)}
    facts["training"] = (args.out / "config.yaml").read_text()
    save_network(model, args.out / "speaker.safetensors", facts)
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(
        f"{args.out}: {config.loop.steps} steps on {len(vectors)} embeddings, cosine of what is decoded "
        f"{figures['cosine_of_means']:.3f}, U {figures['radius']:.3g}, clamp {figures['clamp']:.3g}"
    )


if __name__ == "__main__":
    run(main)
