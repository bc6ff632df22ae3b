"""The shape of the repository, as CONTRIBUTING.md states it. Read from git: what it tracks or would take."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"egs", "local", "steps", "utils", "dpanon", "tests", "tools"}
DOCUMENTS = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "pyproject.toml", "Makefile"}
BUDGET = {"egs/*/*/run.sh": 150, "steps/*.sh": 80, "utils/*": 150, "dpanon/**/*.py": 400}  # lines
WEIGHTS_BUDGET = 40_000_000  # bytes

# Random numbers outside dpanon/privacy, each with the reason why no release depends on its being private.
DRAWS = re.compile(r"laplace|normal_|randn|randn_like|standard_normal|default_rng|xavier_\w+|kaiming_\w+", re.I)
MAY_DRAW = {
    "dpanon/models/": "initial weights",
    "dpanon/train/": "training on public data",
    "dpanon/synth/": "initial weights; the breath of the excitation, after the release",
    "dpanon/attack/": "attacks: splits and initial weights",
    "dpanon/evaluate/": "bootstrap",
    "local/": "made corpora",
}


def files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]


FILES = files()


def matching(pattern):
    found = {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)}
    return [name for name in FILES if name in found]


def test_top_level_is_the_seven_folders_and_the_documents():
    tops = {name.split("/")[0] for name in FILES if "/" in name}
    assert {top for top in tops if not top.startswith(".")} <= FOLDERS
    assert {name for name in FILES if "/" not in name and not name.startswith(".")} == DOCUMENTS


def test_a_recipe_holds_no_program():
    allowed = {"run.sh", "cmd.sh", "path.sh", "README.md", "RESULTS.md", "steps", "utils", "local", "report.html"}
    for name in FILES:
        parts = name.split("/")
        if parts[0] == "egs" and len(parts) > 3:
            assert parts[3] in allowed or parts[3] in ("conf", "results"), f"{name} does not belong into a recipe"


@pytest.mark.parametrize("pattern", BUDGET)
def test_line_budget(pattern):
    for name in matching(pattern):
        if (ROOT / name).is_file():
            lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
            assert lines <= BUDGET[pattern], f"{name}: {lines} lines, split it by idea"


def draws_of(source):
    """Names used in code (not in text or comments) that draw random numbers."""
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if DRAWS.fullmatch(name):
            yield f"{node.lineno}: {name}"


def test_release_noise_is_drawn_in_the_privacy_core_only():
    for name in FILES:
        if name.endswith(".py") and not name.startswith(("dpanon/privacy/", "tests/")):
            found = list(draws_of((ROOT / name).read_text(encoding="utf-8")))
            if name.startswith(tuple(MAY_DRAW)):
                found = [draw for draw in found if "laplace" in draw.lower()]
            assert not found, f"{name}: {found}: noise belongs into dpanon/privacy; else say why not in MAY_DRAW"


def test_the_search_for_draws_finds_them():
    assert list(draws_of("x = torch.randn(3)\ny = rng.laplace(0, 1)\nz = np.random.default_rng(0)")) == [
        "1: randn",
        "2: laplace",
        "3: default_rng",
    ]
    assert not list(draws_of("'randn'  # laplace"))


def test_the_privacy_core_imports_nothing_of_the_rest():
    allowed = {"numpy", "torch", "scipy", "dp_accounting", "cryptography", "mpmath", "dpanon"}
    for name in FILES:
        if not (name.startswith("dpanon/privacy/") and name.endswith(".py")):
            continue
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and node.level == 0
                else []
            )
            for module in modules:
                top = module.split(".")[0]
                assert top in allowed or top in sys.stdlib_module_names, f"{name} imports {module}"
                assert top != "dpanon" or module.startswith("dpanon.privacy"), f"{name} imports {module}"


def test_no_machine_paths():
    pattern = re.compile(r"(^|[^A-Za-z0-9_.])/(work|farm|root|home)/", re.M)
    for name in FILES:
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".sh", ".md", ".yaml", ".toml", ".json", ".csv", ".bats", ""}:
            if name != "tests/test_layout.py":
                assert not pattern.search(path.read_text(encoding="utf-8")), f"{name} names a path of one machine"


def test_weights_are_small_and_have_a_card():
    weights = [ROOT / name for name in FILES if name.endswith((".safetensors", ".pt", ".pth", ".npz", ".onnx"))]
    assert sum(path.stat().st_size for path in weights) <= WEIGHTS_BUDGET
    for path in weights:
        assert path.suffix == ".safetensors", f"{path}: weights ship as safetensors, which cannot run code"
        assert path.is_relative_to(ROOT / "dpanon" / "anonymize" / "pretrained"), path
        beside = path.with_suffix(".md")
        shared = [card for card in path.parent.glob("*.md") if path.name in card.read_text(encoding="utf-8")]
        assert beside.exists() or shared, f"{path} has no model card: {beside.name} or a .md beside it that names it"


def test_no_other_large_file():
    for name in FILES:
        path = ROOT / name
        if path.is_file() and path.suffix != ".safetensors":
            assert path.stat().st_size <= 2_000_000, f"{name} is {path.stat().st_size} bytes"


def shell_scripts():
    for name in FILES:
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and (path.suffix in ("", ".sh")):
            text = path.read_bytes()[:200_000]
            if text.startswith((b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh")):
                yield name, text.decode()


SOURCED = ("utils/parse_options.sh", "utils/stages.sh", "utils/stamps.sh", "/path.sh", "/cmd.sh")


def test_shell_rules():
    for name, text in shell_scripts():
        assert text.splitlines()[1].startswith("# "), f"{name}: line 2 says what it does"
        if name.endswith(SOURCED):
            continue
        assert "\nset -euo pipefail\n" in text, f"{name}: set -euo pipefail"
        assert (ROOT / name).stat().st_mode & 0o111, f"{name} is not executable"
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split(" #")[0]
            assert not re.search(r"\beval\b|\|\| true\b", code), f"{name}:{number}: {line.strip()}"


def test_every_step_has_a_command_of_the_same_purpose():
    for name in matching("steps/*.sh"):
        for module in re.findall(r"-m (dpanon\.[\w.]+)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), f"{name} calls {module}, which does not exist"
