"""What the recipe for paper A needs before it is begun: parameters, disk, time. Called by run.sh --dry-run true.

Nothing is read but the configurations in <conf-dir>, footprint.yaml among them. Exit code 0 when every network can
be built.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config
from dpanon.synth.choose import SYNTHESIZERS
from dpanon.train.footprint import FootprintConfig, cpu_hours, disk, networks


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--synthesizer", choices=list(SYNTHESIZERS), default="harmonic", help="that is trained, last")
    parser.add_argument("conf", type=Path, metavar="conf-dir")
    args = parser.parse_args(argv)
    plan = load_config(FootprintConfig, args.conf / "footprint.yaml")
    found = networks(args.conf, plan, args.synthesizer)
    print(f"{'network':34s} {'parameters':>12s} {'number':>7s} {'GPU hours':>10s}")
    for network in found:
        time = f"{network.gpu_hours:.2f}" if network.gpu_hours else "-"
        print(f"{network.name:34s} {network.parameters:12,d} {network.number:7d} {time:>10s}")
    names = {network.name for network in found}
    for name in ("synthesizer hifigan", "ECAPA-TDNN attacker"):
        if name not in names:
            print(f"{name:34s} not counted: SpeechBrain is not installed")
    total = sum(network.gpu_hours for network in found)
    print(f"time (estimates, {plan.gpus} GPUs at {plan.teraflops:g} TFLOP/s sustained each, {plan.jobs} CPU jobs)")
    print(f"  {total / plan.gpus:8.1f} h  all trainings, one after the other, each on all GPUs")
    for what, hours in cpu_hours(plan).items():
        print(f"  {hours:8.1f} h  {what}")
    print("disk (estimates)")
    spaces = disk(plan, found)
    for what, gibibytes in spaces.items():
        print(f"  {gibibytes:8.1f} GiB  {what}")
    print(f"  {sum(spaces.values()):8.1f} GiB  in all")


if __name__ == "__main__":
    run(main)
