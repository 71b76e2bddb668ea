# Shared by the scripts here; sourced, not run.

# Stop at the first failure, say which command it was, and work from the workspace root.
set -euo pipefail
trap 'echo "failed: $BASH_COMMAND (${BASH_SOURCE[0]##*/}, line $LINENO)" >&2' ERR
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Checks build everything once; incremental data would only fill the disk.
export CARGO_INCREMENTAL=0

# step DESCRIPTION COMMAND... : says what runs, runs it, says how long it took.
step() {
    local what=$1 start=$SECONDS
    shift
    printf '\n=== %s\n    %s\n' "$what" "$*"
    "$@"
    printf '    done in %s s\n' $((SECONDS - start))
}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
