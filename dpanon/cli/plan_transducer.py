"""What a recipe with transducers needs, before it is begun: parameters, memory, time, noise. Called by --dry-run true.

Nothing is read but the configuration. Exit code 0 when it can be built.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config
from dpanon.data.tokens import read_tokens
from dpanon.errors import UsageError
from dpanon.models.transducer_encoder import choose_encoder
from dpanon.train.plan import CLEAR, PlanConfig, affordable_queries, plan_training, price_answers
from dpanon.train.transducer import TrainTransducerConfig


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="of the training, conf/nodp.yaml")
    parser.add_argument("--plan", type=Path, required=True, help="sizes of corpora and machine, conf/plan.yaml")
    parser.add_argument("--tokens", type=Path, help="list of tokens; empty: the vocabulary of --config")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    args = parser.parse_args(argv)
    training, config = load_config(TrainTransducerConfig, args.config), load_config(PlanConfig, args.plan)
    model = training.model
    if args.tokens and (found := len(read_tokens(args.tokens))) + 1 != model.vocabulary:
        raise UsageError(f"{args.tokens}: {found} tokens; {args.config} is for {model.vocabulary - 1} and the blank")
    plan = plan_training(model, config)
    own = choose_encoder(model.encoder) == "conformer"
    print(f"encoder         {'the Conformer of dpanon' if own else 'the Conformer of ESPnet'}, {model.layers} blocks")
    print(f"parameters      {plan.parameters / 1e6:.1f} M")
    print(f"memory          {plan.memory_gib:.1f} GiB for {config.batch_seconds:g} s of speech in a batch (estimate)")
    print(f"time            at {config.teraflops:g} TFLOP/s sustained, {config.epochs:g} epochs (estimate)")
    for what, hours in plan.hours.items():
        print(f"  {hours:8.1f} h  {what}")
    told = f"epsilon {args.epsilon:g}, delta {args.delta:g} of all answers, {config.teachers} teachers (exact)"
    print(f"noise           for {told}: sigma")
    print(f"  {'asked':20s} {'queries':>12s} {'on a mean posterior':>20s} {'on each teacher':>16s} {'on a vote':>16s}")
    for price in price_answers(config, args.epsilon, args.delta):
        print(
            f"  {price.what:20s} {price.queries:12,d} {price.sigma_mean:20.4g} {price.sigma_teacher:16.4g} "
            f"{price.sigma_votes:16.4g}"
        )
    few = affordable_queries(config.teachers, args.epsilon, args.delta)
    print(
        f"A posterior is between 0 and 1. With {config.teachers} teachers, {few} answers keep the noise on their mean "
        f"at sigma {CLEAR:g} or below; with more of them it grows by the root of their number."
    )


if __name__ == "__main__":
    run(main)
