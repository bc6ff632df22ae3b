"""Figures of recognisers of words: RESULTS.md and errors.svg from results alone."""

import re

from dpanon.report.commands import FIGURE, curves, results_markdown


def result(system, error, **options):
    claim = {}
    if options:
        partition = {"teachers": options["teachers"]}
        claim = {"epsilon": 8.0, "delta": 1e-5, "options": {"method": "gnmax", "epsilon": 8.0, "partition": partition}}
    around = {"error": error, "error_low": error / 2, "error_high": 2 * error, "num": 100}
    return {"system": system, "claim": claim, "errors": {"test": around}, "membership": {}}


def panels(text):
    """Labels of the first panel, and whether the second has a curve."""
    return re.findall(r"<!-- (.*?) -->", text)


def test_the_figure_names_every_system_once():
    labels = panels(curves([result("nodp", 0.02), result("gnmax_t50_eps8", 0.1, teachers=50)]))
    assert labels.count("nodp") == labels.count("gnmax_t50_eps8") == 1


def test_error_against_teachers_is_drawn_from_two_numbers_on():
    one = [result("nodp", 0.02), result("gnmax_t50_eps8", 0.1, teachers=50)]
    two = [*one, result("gnmax_t10_eps8", 0.4, teachers=10)]
    assert not any("gnmax, epsilon 8" in label for label in panels(curves(one)))
    assert any("gnmax, epsilon 8, test" in label for label in panels(curves(two)))


def test_the_notes_say_what_is_counted():
    words, syllables = result("nodp", 0.02), result("nodp", 0.02)
    syllables["errors"]["test"]["counted"] = "syllable"
    assert "per cent of the words, 95 % intervals by Clopper" in results_markdown([words], "digits")
    assert "per cent of the syllables, 95 % intervals by bootstrap" in results_markdown([syllables], "Mandarin")


def test_the_same_results_give_the_same_figure():
    results = [result("nodp", 0.02), result("gnmax_t50_eps8", 0.1, teachers=50)]
    assert curves(results) == curves(results)


def test_results_show_the_figure_and_say_who_makes_no_claim():
    text = results_markdown([result("nodp", 0.02), result("gnmax_t50_eps8", 0.1, teachers=50)], "digits")
    assert f"(results/{FIGURE})" in text
    assert "nodp (no privacy claim)" in text and "2.0 [1.0, 4.0]" in text
    assert "| gnmax_t50_eps8 | 50 |" in text
