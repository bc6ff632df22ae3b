"""Try to refute what a mechanism or a model claims: exit code 1 if it can be done.

    dpanon audit                                  # every mechanism, at its default claim
    dpanon audit --mechanism bn --epsilon 10      # one, at this claim; --mu for the Gaussian ones
    dpanon audit --models shipped --epsilon-bn 100 --epsilon-f0 10
    dpanon audit --models exp/models --epsilon-bn 1 --epsilon-f0 1

Tier 1 looks at the noise: scale, law, grid, norms in exact arithmetic, reuse across seeds, threads and forks. Tier 2
counts an event under the worst pair of inputs; tier 3 lets an attacker guess. A finding is an error with a
probability of at most one in a billion per check; no finding is no proof.
"""

import sys

from dpanon.cli import ArgumentParser, run
from dpanon.cli.anonymize import epsilon
from dpanon.errors import UsageError
from dpanon.privacy import suites
from dpanon.privacy.audit import Finding

DEFAULT = 1.0
FALSE_ALARM = 1e-9


def main(argv: list[str] | None = None) -> int:
    args = parse_args(sys.argv[1:] if argv is None else argv)
    if args.models:
        audited = [(_name(args), _system(args))]
    else:
        audited = []
        for name in [args.mechanism] if args.mechanism else suites.SUITES:
            kind, suite = suites.SUITES[name]
            claim = getattr(args, kind) or DEFAULT
            audited.append((f"{name}, {kind} = {claim:g}", suite(claim, alarm=FALSE_ALARM)))
    checks = broken = 0
    for title, findings in audited:
        shown = [finding for finding in findings if not args.tier or finding.tier == args.tier]
        print(f"{title}\n{table(shown)}\n")
        checks += len(shown)
        broken += sum(finding.broken for finding in shown)
    print(f"{checks} checks, {broken} broken")
    return 1 if broken else 0


def parse_args(argv: list[str]):
    parser = ArgumentParser(prog="dpanon audit", description=__doc__)
    parser.add_argument("--mechanism", choices=tuple(suites.SUITES), help="one of them (default: all)")
    parser.add_argument("--epsilon", type=epsilon, help="the claim of a mechanism with epsilon (default 1)")
    parser.add_argument("--mu", type=epsilon, help="the claim of a Gaussian mechanism (default 1)")
    parser.add_argument("--models", help="'shipped' or a folder of models: audit the system dp made of them")
    parser.add_argument("--epsilon-bn", type=epsilon, default=100.0, help="with --models (default 100)")
    parser.add_argument("--epsilon-f0", type=epsilon, default=10.0, help="with --models (default 10)")
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), help="only this tier")
    args = parser.parse_args(argv)
    if args.models and (args.mechanism or args.epsilon or args.mu):
        raise UsageError("--models audits a system: give --epsilon-bn and --epsilon-f0, no mechanism")
    if args.mechanism:
        kind = suites.SUITES[args.mechanism][0]
        other = "mu" if kind == "epsilon" else "epsilon"
        if getattr(args, other) is not None:
            raise UsageError(f"--mechanism {args.mechanism} claims {kind}: --{other} does not apply")
    return args


def table(findings: list[Finding]) -> str:
    width = max((len(finding.check) for finding in findings), default=0)
    rows = [f"  tier  {'check':<{width}}  {'measured':>12}  {'limit':>12}  verdict"]
    for finding in sorted(findings, key=lambda f: f.tier):
        numbers = f"{finding.measured:>12.6g}  {finding.limit:>12.6g}"
        rows.append(f"  {finding.tier:<4}  {finding.check:<{width}}  {numbers}  {'BROKEN' if finding.broken else 'ok'}")
    return "\n".join(rows)


def _name(args) -> str:
    return f"system dp, {args.models} models, epsilon-bn {args.epsilon_bn:g}, epsilon-f0 {args.epsilon_f0:g}"


def _system(args) -> list[Finding]:
    from dpanon.anonymize.audit import audit_system
    from dpanon.anonymize.workers import Options, load

    models = "" if args.models == "shipped" else args.models
    system = load(Options("dp", args.epsilon_f0, args.epsilon_bn, models=models))
    own = [
        *suites.frames(args.epsilon_bn, lambda value, dim: type(system.content.mechanism)(value, dim), FALSE_ALARM),
        *suites.f0(args.epsilon_f0, lambda value, channels: type(system.prosody.box)(value, channels), FALSE_ALARM),
    ]
    return audit_system(system) + own


if __name__ == "__main__":
    run(main)
