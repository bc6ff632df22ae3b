# A scratch recipe directory with the links a recipe has; sourced by the .bats files.

repository=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

scratch_recipe() {
  recipe="$BATS_TEST_TMPDIR/a recipe"
  mkdir -p "$recipe"
  ln -s "$repository/utils" "$repository/steps" "$recipe/"
  cd "$recipe" || return 1
}
