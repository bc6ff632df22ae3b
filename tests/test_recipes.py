"""Every recipe and step keeps the contract of CONTRIBUTING.md; recipes with a smoke run in recipes.csv are run.

recipes.csv: recipe; smoke = options of a run that takes a minute or two, empty when there is none without a corpus;
makes = files it must leave, relative to the recipe.
"""

import csv
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from dpanon.config import load_config

ROOT = Path(__file__).resolve().parent.parent
with (ROOT / "tests" / "recipes.csv").open(newline="") as stream:
    ROWS = list(csv.DictReader(stream))
RECIPES = [row["recipe"] for row in ROWS]
STAGES = {0: "data", 1: "features", 2: "", 3: "", 4: "release", 5: "attack", 6: "utility", 7: "report"}
each_recipe = pytest.mark.parametrize("recipe", RECIPES)


def run(directory, *arguments, timeout=120, **environment):
    return subprocess.run(
        ["./run.sh", *arguments],
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )


def code(path):
    """Commands of a script: no comments, continued lines joined."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if not line.lstrip().startswith("#")]


def options_of(script):
    """What utils/parse_options.sh lets a script take."""
    names = set()
    for line in script.read_text(encoding="utf-8").splitlines():
        if "parse_options.sh" in line and not line.startswith("#"):
            return names
        if (found := re.match(r"([a-z][a-z0-9_]*)=", line)) and "$(" not in line:
            names.add("--" + found[1].replace("_", "-"))
    return set()


def test_the_list_is_the_recipes():
    there = {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("egs/*/*/run.sh")}
    assert set(RECIPES) == there
    assert len(RECIPES) == len(there)


@each_recipe
def test_files_and_links(recipe):
    directory = ROOT / recipe
    for name in ("README.md", "cmd.sh", "path.sh", "conf"):
        assert (directory / name).exists(), f"{recipe}/{name} is missing"
    for name in ("steps", "utils", "local"):
        assert (directory / name).is_symlink(), f"{recipe}/{name} is not a link"
        assert (directory / name).resolve() == ROOT / name
    assert "run.sh" in (directory / "README.md").read_text(encoding="utf-8")


@each_recipe
def test_help_and_list_need_nothing_installed(recipe, tmp_path):
    nothing = {"DPANON_VENV": str(tmp_path / "venv"), "DPANON_SETUP": "true"}
    assert run(ROOT / recipe, "--help", **nothing).returncode == 0
    listed = run(ROOT / recipe, "--list", "true", **nothing)
    assert listed.returncode == 0, listed.stderr
    rows = [re.fullmatch(r" *(\d+)  (.+)", line) for line in listed.stdout.splitlines()]
    assert all(rows), listed.stdout
    assert [int(row[1]) for row in rows] == sorted(STAGES), "the stages are 0 to 7, in order"
    for row in rows:
        assert row[2].startswith(STAGES[int(row[1])]), f"stage {row[1]} is '{STAGES[int(row[1])]}' in every recipe"
    assert not (tmp_path / "venv").exists()


@each_recipe
def test_it_can_be_called_from_anywhere(recipe, tmp_path):
    """By a path relative to where the caller is, as README.md does."""
    for start in (ROOT, ROOT / "egs", ROOT / "tests"):
        name = os.path.relpath(ROOT / recipe / "run.sh", start)
        for option in (("--help",), ("--list", "true")):
            command = [name if "/" in name else f"./{name}", *option]
            ended = subprocess.run(command, cwd=start, capture_output=True, text=True, timeout=60)
            assert ended.returncode == 0, ended.stderr
            assert not ended.stderr and len(ended.stdout.splitlines()) >= 8


@each_recipe
def test_misuse_stops_before_any_stage(recipe):
    for arguments in (("--stge", "3"), ("--list", "yes"), ("--stage",), ("--stage", "5", "--stop-stage", "4"), ("3",)):
        stopped = run(ROOT / recipe, *arguments)
        assert stopped.returncode == 2, arguments
        assert "stage 0" not in stopped.stdout


@each_recipe
def test_what_it_calls_exists_and_takes_the_options_given(recipe):
    directory = ROOT / recipe
    for line in code(directory / "run.sh"):
        for script in re.findall(r"(?<![\w/.])((?:steps|utils|local)/[\w/-]+\.(?:sh|py))", line):
            path = directory / script
            assert path.is_file(), f"{recipe} calls {script}"
            if script.startswith("utils/") or script.endswith(".py") or f". {script}" in line:
                continue
            assert os.access(path, os.X_OK), f"{script} is not executable"
            call = re.sub(r'"[^"]*"', '""', line.split(script, 1)[1]).split("|")[0]  # not what is in an argument
            for option in re.findall(r"(?<=\s)(--[a-z][a-z0-9-]*)", call):
                assert option in options_of(path), f"{recipe} gives {option} to {script}, which does not take it"


def switches_of(script):
    """Options of a step that are true or false."""
    found = re.findall(r"^([a-z][a-z0-9_]*)=(?:true|false)\b", script.read_text(encoding="utf-8"), re.MULTILINE)
    return {"--" + name.replace("_", "-") for name in found}


@each_recipe
def test_a_switch_of_a_step_is_given_true_or_false(recipe):
    """With the recipe's own defaults; the values of its variables are those before the first stage."""
    path = ROOT / recipe / "run.sh"
    before = path.read_text(encoding="utf-8").split("\nif at_stage", 1)[0]
    shown = subprocess.run(
        ["bash", "-c", f"{before}\nset -o posix; set", str(path), "--list", "true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    values = dict(re.findall(r"^([a-z][a-z0-9_]*)=(.*)$", shown.stdout, re.MULTILINE))
    for line in code(path):
        for script, call in re.findall(r"(?<![\w/.])(steps/[\w-]+\.sh)(.*?)(?=steps/[\w-]+\.sh|$)", line):
            for option, name in re.findall(r'(--[a-z][a-z0-9-]*) "\$(\w+)"', call):
                if name in values and option in switches_of(ROOT / script):
                    assert values[name] in ("true", "false"), f"{recipe}: {script} {option} gets '{values[name]}'"


@each_recipe
def test_the_options_that_a_readme_names_exist(recipe):
    """In code: an option is one of run.sh, or of a script that the same line names."""
    directory = ROOT / recipe
    known = options_of(directory / "run.sh") | {"--help"}
    for line in (directory / "README.md").read_text(encoding="utf-8").splitlines():
        here = set(known)
        for script in re.findall(r"(?:steps|utils|local|tests|tools)/[\w/-]+\.sh", line):
            here |= options_of(ROOT / script)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", line):
            assert option in here, f"{recipe}/README.md: no script of this line takes {option}: {line}"


def configurations():
    """What a file of conf/ is, by the first word of its name."""
    from dpanon.attack.asv import AsvConfig
    from dpanon.attack.ecapa import EcapaConfig
    from dpanon.attack.identification import IdentificationConfig
    from dpanon.attack.protected import ProtectedAttackConfig
    from dpanon.train.bottleneck import TrainBottleneckConfig
    from dpanon.train.commands import TrainCommandsConfig
    from dpanon.train.dpsgd import DpSgdConfig
    from dpanon.train.footprint import FootprintConfig
    from dpanon.train.gender import TrainGenderConfig
    from dpanon.train.intonation import TrainIntonationConfig
    from dpanon.train.pitch import TrainPitchConfig
    from dpanon.train.plan import PlanConfig
    from dpanon.train.queries import QueriesConfig
    from dpanon.train.speaker import TrainSpeakerConfig
    from dpanon.train.synth import TrainSynthConfig
    from dpanon.train.transducer import TrainTransducerConfig

    return {
        "attack": ProtectedAttackConfig,
        "asi": IdentificationConfig,
        "asv": AsvConfig,
        "bn": TrainBottleneckConfig,
        "dpsgd": DpSgdConfig,
        "ecapa": EcapaConfig,
        "f0": TrainPitchConfig,
        "footprint": FootprintConfig,
        "gender": TrainGenderConfig,
        "intonation": TrainIntonationConfig,
        "plan": PlanConfig,
        "queries": QueriesConfig,
        "speaker": TrainSpeakerConfig,
        "synth": TrainSynthConfig,
        "transducer": TrainTransducerConfig,
        **dict.fromkeys(("nodp", "public", "start", "student", "teacher"), TrainCommandsConfig),
    }


@each_recipe
def test_configuration_is_read_by_something(recipe):
    directory = ROOT / recipe
    classes = configurations()
    text = "".join(path.read_text(encoding="utf-8") for path in [directory / "run.sh", *ROOT.glob("steps/*.sh")])
    for conf in (directory / "conf").rglob("*.yaml"):
        assert isinstance(yaml.safe_load(conf.read_text(encoding="utf-8")), dict), conf
        load_config(classes[conf.stem.split("_")[0]], conf)
        if "tuning" not in conf.parts:
            read = [re.sub(r"\$\w+", ".+", name) for name in re.findall(r"conf/([\w$]+)\.yaml", text)]
            assert any(re.fullmatch(name, conf.stem) for name in read), f"no one reads {recipe}/conf/{conf.name}"


@pytest.mark.parametrize("step", sorted(path.name for path in ROOT.glob("steps/*.sh")))
def test_a_step_says_how_it_is_used(step, tmp_path):
    for name in ("steps", "utils", "local"):
        (tmp_path / name).symlink_to(ROOT / name)
    for arguments in ((), ("--help",)):
        ended = subprocess.run(
            [f"steps/{step}", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert ended.returncode == (0 if arguments else 2), ended.stderr
        assert f"Usage: steps/{step} " in (ended.stdout if arguments else ended.stderr)
    assert {path.name for path in tmp_path.iterdir()} == {"steps", "utils", "local"}, "misuse leaves nothing behind"


def copy_of(recipe, tree):
    """The recipe in a tree of its own, so that nothing in the repository changes."""
    tree.mkdir(exist_ok=True)
    for name in ("dpanon", "steps", "utils", "local", "tools", "pyproject.toml"):
        (tree / name).symlink_to(ROOT / name)
    made = shutil.ignore_patterns("data", "exp", "corpora", "results", "RESULTS.md", "report.html")
    shutil.copytree(ROOT / recipe, tree / recipe, symlinks=True, ignore=made)
    return tree / recipe


def test_a_new_recipe_begins_as_a_copy(tmp_path):
    copy_of("egs/mini/anon", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "recipes.csv").write_text("recipe,smoke,makes\n", encoding="utf-8")
    command = [tmp_path / "tools" / "new_recipe.sh", "vctk/anon"]
    for expected in (0, 1):  # the second time it is there
        assert subprocess.run(command, capture_output=True, timeout=60).returncode == expected
    assert (tmp_path / "tests" / "recipes.csv").read_text(encoding="utf-8").endswith("\negs/vctk/anon,,\n")
    new = tmp_path / "egs" / "vctk" / "anon"
    assert (new / "steps").resolve() == ROOT / "steps"
    assert run(new, "--list", "true").stdout.count("\n") == len(STAGES)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row["smoke"]], ids=lambda row: row["recipe"])
def test_smoke(row, tmp_path):
    directory = copy_of(row["recipe"], tmp_path / "tree")
    ended = run(directory, *shlex.split(row["smoke"]), timeout=2400, DPANON_SETUP="false")
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    for name in row["makes"].split():
        assert list(directory.glob(name)), f"{row['recipe']} did not make {name}"
    again = run(directory, *shlex.split(row["smoke"]), timeout=600, DPANON_SETUP="false")
    assert again.returncode == 0, f"the second run: {again.stdout[-3000:]}\n{again.stderr[-3000:]}"


@pytest.mark.slow
def test_a_release_does_not_depend_on_jobs_or_threads(tmp_path):
    """Byte for byte, with noise that can be repeated."""
    options = shlex.split("--speakers 1 --system dp --keyed-noise 1")
    made = []
    for nj in (1, 3):
        directory = copy_of("egs/mini/anon", tmp_path / f"nj{nj}")
        for stage in ("0", "4"):
            ended = run(
                directory,
                *options,
                "--nj",
                str(nj),
                "--stage",
                stage,
                "--stop-stage",
                stage,
                timeout=600,
                DPANON_SETUP="false",
                OMP_NUM_THREADS="2" if nj == 1 else "1",
            )
            assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        (release,) = directory.glob("data/test_*_keyed1")
        made.append({path.name: path.read_bytes() for path in release.glob("wav/*.wav")})
        made[-1]["privacy.jsonl"] = (release / "privacy.jsonl").read_bytes()
    assert len(made[0]) > 1
    differ = [name for name in made[0] if made[0][name] != made[1].get(name)]
    assert made[0].keys() == made[1].keys()
    assert not differ
