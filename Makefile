# Shortcuts; the commands themselves are in README.md and CONTRIBUTING.md.
.PHONY: help mini test fast format

help:
	@grep -E '^[a-z]+: #' Makefile

mini: # the small recipe, all stages
	egs/mini/anon/run.sh

test: # every check
	tests/run.sh

fast: # every check but the slow tests
	tests/run.sh --fast true

format: # put Python and shell into the project's style
	tools/format.sh
