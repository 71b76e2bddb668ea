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

# Every feature of every package, for `--features`; without those that only pass on a choice of
# sqlx's (another TLS, another runtime, the system's SQLite), the one that wants clients of databases,
# which need libraries of the system, and the one that wants a newer PgBouncer.
tested_features() {
    local manifest package
    for manifest in */Cargo.toml; do
        package=${manifest%/Cargo.toml}
        sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z0-9-]*\) *= .*/\1/p' "$manifest" |
            sed -E "/^(default|native-clients|newer-pgbouncer|tls-.*|runtime-(smol|async.*)|.*-unbundled)\$/d; s|^|$package/|"
    done | paste -sd, -
}
