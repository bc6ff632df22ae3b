"""Metrics of the scoring steps -> results/*.json -> RESULTS.md, a table on the terminal, report.html."""
