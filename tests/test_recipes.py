"""Every recipe keeps the contract of CONTRIBUTING.md; those with a smoke run in recipes.csv are run.

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

ROOT = Path(__file__).resolve().parent.parent
with (ROOT / "tests" / "recipes.csv").open(newline="") as stream:
    ROWS = list(csv.DictReader(stream))
RECIPES = [row["recipe"] for row in ROWS]
STAGES = {0: "data", 1: "features", 2: "", 3: "", 4: "release", 5: "attack", 6: "utility", 7: "report"}
each_recipe = pytest.mark.parametrize("recipe", RECIPES)


def run(directory, *arguments, timeout=60, **environment):
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
            call = line.split(script, 1)[1].split("|")[0]
            for option in re.findall(r"(?<=\s)(--[a-z][a-z0-9-]*)", call):
                assert option in options_of(path), f"{recipe} gives {option} to {script}, which does not take it"


@each_recipe
def test_configuration_is_read_by_something(recipe):
    directory = ROOT / recipe
    text = "".join(path.read_text(encoding="utf-8") for path in [directory / "run.sh", *ROOT.glob("steps/*.sh")])
    read = [re.sub(r"\\\$(\\\{[^}]*\\\}|\w+)", ".+", re.escape(name)) for name in re.findall(r"conf/\S+?\.yaml", text)]
    for conf in (directory / "conf").rglob("*.yaml"):
        assert isinstance(yaml.safe_load(conf.read_text(encoding="utf-8")), dict), conf
        if "tuning" not in conf.parts:
            name = f"conf/{conf.name}"
            assert any(re.fullmatch(pattern, name) for pattern in read), f"no one reads {recipe}/{name}"


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row["smoke"]], ids=lambda row: row["recipe"])
def test_smoke(row, tmp_path):
    """The recipe in a tree of its own, so that nothing in the repository changes."""
    for name in ("dpanon", "steps", "utils", "local", "tools", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    directory = tmp_path / row["recipe"]
    made = shutil.ignore_patterns("data", "exp", "corpora", "results", "RESULTS.md", "report.html")
    shutil.copytree(ROOT / row["recipe"], directory, symlinks=True, ignore=made)
    ended = run(directory, *shlex.split(row["smoke"]), timeout=1200, DPANON_SETUP="false")
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    for name in row["makes"].split():
        assert list(directory.glob(name)), f"{row['recipe']} did not make {name}"
    again = run(directory, *shlex.split(row["smoke"]), timeout=300, DPANON_SETUP="false")
    assert again.returncode == 0, f"the second run: {again.stdout[-3000:]}\n{again.stderr[-3000:]}"
