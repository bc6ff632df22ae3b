"""Reports from made-up figures. Every number here is invented."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dpanon.cli import report as cli
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.metrics import write_metrics
from dpanon.report import collect, plots, tables


def asv(condition, eer, attacker="campplus+cosine", **more):
    values = {"condition": condition, "attacker": attacker, "eer": eer, "eer_low": eer - 0.02, "eer_high": eer + 0.02}
    values |= {"linkability": 0.5, "num_targets": 50, "num_nontargets": 450, "epsilon_frame": None}
    return values | {"epsilon_utterance": None, "eer_floor": None, "strongest": True} | more


def made_set(path, num_utts=3):
    wavs = path.parent / f"{path.name}-wav"
    wavs.mkdir(parents=True)
    rows: dict = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples")}
    for i in range(num_utts):
        utt = f"s{i % 2}-{i}"
        write_wav(wavs / f"{utt}.wav", (0.2 * np.sin(np.arange(8000) * 0.05)).astype(np.float32))
        rows["wav.scp"][utt], rows["utt2spk"][utt], rows["utt2num_samples"][utt] = (
            wavs / f"{utt}.wav",
            f"s{i % 2}",
            8000,
        )
    write_data_dir(path, rows)
    return str(path)


@pytest.fixture
def recipe(tmp_path):
    """Figures of original, plain and dp."""
    exp = tmp_path / "exp"
    sets = {name: made_set(tmp_path / "data" / name) for name in ("test", "test_plain", "test_dp")}
    dp = {"epsilon_frame": 1.0, "epsilon_utterance": 1240.0, "eer_floor": 0.003}
    write_metrics(exp / "oo", "asv", "original", "test", asv("oo", 0.002, data=sets["test"]))
    write_metrics(exp / "aa_plain", "asv", "plain", "test_plain", asv("aa", 0.25, data=sets["test_plain"]))
    for attacker, eer in (("campplus+cosine", 0.44), ("ge2e+wccn", 0.40)):
        values = asv("aa", eer, attacker, data=sets["test_dp"], strongest=eer == 0.40, **dp)
        write_metrics(exp / "aa_dp" / attacker, "asv", "dp", "test_dp", values)
    write_metrics(exp / "aa_dp", "asv", "dp", "test_dp", values)
    write_metrics(exp / "oa_dp", "asv", "dp", "test_dp", asv("oa", 0.48, data=sets["test_dp"], **dp))
    (exp / "aa_dp" / "ge2e+wccn" / "scores").write_text(
        "s0 s0-1 1.0 target\ns1 s0-1 0.5 nontarget\ns0 s1-1 0.1 nontarget\n"
    )
    write_metrics(
        exp / "asr", "asr", "dp", "test_dp", {"wer": 0.36, "wer_low": 0.3, "wer_high": 0.4, "recogniser": "W"}
    )
    write_metrics(exp / "f0", "f0", "dp", "test_dp", {"f0_correlation": 0.31, "original": sets["test"]})
    write_metrics(exp / "quality", "quality", "dp", "test_dp", {"dnsmos_ovrl": 2.71})
    (tmp_path / "data/test_dp/privacy.json").write_text(
        json.dumps({"system": "dp", "sentence": "For two utterances <of equal length> ...", "adjacency": "replace one"})
    )
    return tmp_path


def test_every_system_has_its_row_and_the_strongest_attacker(recipe):
    results = collect.collect(recipe / "exp")
    assert sorted(results) == ["dp", "original", "plain"]
    (row,) = results["dp"]["rows"]
    assert row["asv"]["aa"]["attacker"] == "ge2e+wccn" and row["epsilon_utterance"] == 1240
    assert len(results["dp"]["attackers"]) == 3


def test_results_hold_no_path(recipe):
    cli.main(["--players", "0", str(recipe / "exp"), str(recipe / "results")])
    for name in ("original", "plain", "dp"):
        assert str(recipe) not in (recipe / "results" / f"{name}.json").read_text()
    assert str(recipe) not in (recipe / "RESULTS.md").read_text()


def test_whole_report(recipe, capsys):
    began = ["--started", "0", "--command", "./run.sh --epsilon-bn 1", "--status", "reproduced", "--title", "made <up>"]
    cli.main([*began, str(recipe / "exp"), str(recipe / "results")])
    out = capsys.readouterr().out
    assert "original (no privacy claim)" in out and "40.0 [38.0, 42.0]" in out and "RESULTS.md" in out
    text = (recipe / "RESULTS.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| dp |"))
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "dp", "1", "1240", "-", "48.0 [46.0, 50.0]", "40.0 [38.0, 42.0]", "vacuous", "0.50", "36.0 [30.0, 40.0]",
        "0.31", "2.71",
    ]  # fmt: skip
    assert (
        "## dp - reproduced" in text and "    ./run.sh --epsilon-bn 1\n" in text and "Adjacency: replace one." in text
    )
    assert re.search(r"dpanon \d+\.\d+\.\d+, commit .+; .+ h \d+ min; WER by W; results/dp.json", text)
    assert text.index("| original") < text.index("| plain") < text.index("| dp |")


class Page(HTMLParser):
    """Collects what the page would load."""

    def __init__(self, text):
        super().__init__()
        self.sources, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_is_self_contained(recipe):
    cli.main(["--title", "made <up>", str(recipe / "exp"), str(recipe / "results")])
    text = (recipe / "report.html").read_text()
    page = Page(text)
    assert all(source.startswith("data:") for source in page.sources)
    assert page.tags.count("audio") == 2 * 3 and page.tags.count("img") == 2 and "script" not in page.tags
    assert "made &lt;up&gt;" in text and "&lt;of equal length&gt;" in text and "<up>" not in text
    assert "recordings of original speakers" in text


def test_the_original_can_be_left_out(recipe):
    cli.main(["--original-audio", "false", str(recipe / "exp"), str(recipe / "results")])
    text = (recipe / "report.html").read_text()
    assert Page(text).tags.count("audio") == 2 * 2 and "recordings of original speakers" not in text


def test_one_system_updates_only_its_own_results(recipe):
    cli.main(["--players", "0", str(recipe / "exp"), str(recipe / "results")])
    before = (recipe / "results/plain.json").read_bytes()
    cli.main(["--players", "0", "--system", "dp", "--status", "paper", str(recipe / "exp"), str(recipe / "results")])
    assert (recipe / "results/plain.json").read_bytes() == before
    assert json.loads((recipe / "results/dp.json").read_text())["status"] == "paper"
    assert "| plain" in (recipe / "RESULTS.md").read_text()


def test_markdown_is_a_function_of_the_results(recipe):
    cli.main(["--players", "0", "--title", "x", str(recipe / "exp"), str(recipe / "results")])
    results = tables.read_results(recipe / "results")
    assert tables.results_markdown(results, "x") == (recipe / "RESULTS.md").read_text()


def test_an_attacker_may_be_measured_twice_and_be_the_strongest_once(recipe):
    """Without training on released speech, cosine of exp/asv_original and of exp/asv_<system> is one attacker."""
    before = collect.collect(recipe / "exp")["plain"]
    for name, first in (("asv_a", True), ("asv_b", False)):
        write_metrics(
            recipe / "exp" / name,
            "asv",
            "plain",
            "test_plain",
            asv("aa", 0.2, "cosine", strongest=first),
        )
    after = collect.collect(recipe / "exp")["plain"]
    assert len(after["attackers"]) == len(before["attackers"]) + 1


def test_mistakes(recipe, tmp_path):
    with pytest.raises(UsageError, match="no figures of"):
        cli.main(["--system", "dq", str(recipe / "exp"), str(recipe / "results")])
    with pytest.raises(EvaluationError, match="run the scoring steps first"):
        cli.main([str(tmp_path / "nothing"), str(recipe / "results")])
    with pytest.raises(UsageError, match="--started"):
        cli.main(["--started", "today", str(recipe / "exp"), str(recipe / "results")])
    (recipe / "results").mkdir()
    (recipe / "results" / "bad.json").write_text("{}")
    with pytest.raises(EvaluationError, match="bad.json"):
        tables.read_results(recipe / "results")
    write_metrics(recipe / "exp" / "other", "asv", "plain", "test_plain", asv("aa", 0.3))
    with pytest.raises(EvaluationError, match="other figures"):
        collect.collect(recipe / "exp")


def test_tables_of_text():
    assert tables.markdown_table(("a", "b"), [("1|2", "3")]) == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |\n"
    assert tables.text_table(("name", "x", "y"), [("ab", "-", "1")]) == "name  y\n----  -\nab    1\n"
    assert tables.duration(3599) == "1 h 0 min" and tables.duration(90) == "2 min"


def test_commit_of_no_repository(tmp_path):
    assert collect.commit(tmp_path / "nowhere") == "unknown"


def test_figures_repeat_and_show_gaps():
    tracks = {"original": np.asarray([0, 100, 110, 0, 90.0]), "dp": np.asarray([0, 120, 0, 0, 95.0])}
    assert plots.f0_overlay(tracks) == plots.f0_overlay(tracks)
    panels = {"dp, aa": (np.ones(3), np.zeros(5)), "all alike": (np.ones(3), np.ones(2))}
    assert plots.score_histograms(panels).lstrip().startswith("<?xml")


def test_what_an_attacker_knows_is_told_apart(tmp_path):
    """The same extractor and back-end, trained on original and on released speech: two attackers of one condition."""
    for knowledge, eer in (("lazy-informed", 0.4), ("semi-informed", 0.3)):
        write_metrics(tmp_path / knowledge, "asv", "dp", "test_dp", asv("aa", eer, knowledge=knowledge))
    found = collect.collect(tmp_path)["dp"]
    assert [row["eer"] for row in found["attackers"]] == [0.4, 0.3]
    assert found["rows"][0]["asv"]["aa"]["eer"] == 0.3  # the strongest
    assert "| aa, lazy-informed |" in tables.attackers_table(found)


def test_a_badly_trained_attacker_is_said_to_be_one(tmp_path):
    flag = "badly trained attacker: it tells whose 12.0 % of its own training crops are"
    write_metrics(tmp_path / "oo", "asv", "original", "test", asv("oo", 0.3, "ecapa-trained+cosine"))
    write_metrics(tmp_path / "good", "asv", "original", "test", asv("oo", 0.01))
    for attacker, more in (
        ("ecapa-trained+cosine", {"flags": [flag]}),
        ("ecapa-tuned+cosine", {}),
        ("campplus+cosine", {}),
    ):
        values = asv("aa", 0.4, attacker, knowledge="semi-informed", **more)
        write_metrics(tmp_path / attacker, "asv", "dp", "test_dp", values)
    page = tables.results_markdown(list(collect.collect(tmp_path).values()), "x")
    control = "badly trained attacker: the same network makes 30.0 % errors on original speech"
    said = [line for line in page.splitlines() if line.startswith("- ")]
    assert said == [
        f"- ecapa-trained+cosine, test_dp, aa: {flag}.",
        f"- ecapa-trained+cosine, test_dp, aa: {control}.",
        f"- ecapa-tuned+cosine, test_dp, aa: {control}.",
    ]
    assert page.count(tables.BADLY_TRAINED) == 1
