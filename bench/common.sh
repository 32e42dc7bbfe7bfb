# What bench/run, bench/pool and bench/host share; they source it with $here
# set.  Sets $program: $CGRAPHLUA, that of ./build, or the one beside bench/ (a
# bundle's); and $scratch, a folder that goes at the end.
# shellcheck shell=sh
# shellcheck disable=SC2154
for program in "${CGRAPHLUA:-}" "$here/../build/cgraphlua" \
  "$here/../cgraphlua" ./cgraphlua; do
  test -z "$program" || test ! -x "$program" || break
done
test -x "$program" || {
  echo "bench/${0##*/}: no cgraphlua in build/ or beside bench/; name it in" \
    "\$CGRAPHLUA" >&2
  exit 1
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/cgraphlua-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# ask_peers SCRIPT [ARGUMENT]: runs `SCRIPT PEER ARGUMENT` for each of $peers
# that python3 can import; $told gets a PEER=FILE for each that answered.
told=
ask_peers() {
  for peer in $peers; do
    command -v python3 >/dev/null || return 0
    if timeout 300 python3 "$here/$1" "$peer" ${2:+"$2"} >"$scratch/$peer" \
      2>"$scratch/error"; then
      told="$told $peer=$scratch/$peer"
    else
      echo "bench/${0##*/}: without $peer: $(tail -n 1 "$scratch/error")" >&2
    fi
  done
}
