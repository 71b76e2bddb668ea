#!/bin/sh
# What we sign the Python library `standardwebhooks` verifies, and the other way round.
# Needs python3 with venv (installed where that is possible: Debian, as root) and PyPI or a mirror
# that pip is configured for. Arguments go to `cargo build`.
set -eu
cd "$(dirname "$0")/../.."

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

if ! has_venv; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "Installing python3-venv."
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    fi
    has_venv || fail "the interoperability test needs Python 3 with venv. Install it, for example by" \
        "\`sudo apt-get install python3-venv\`, and run this again."
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "standardwebhooks>=1.0,<2" ||
    fail "the Python package standardwebhooks could not be installed (pip's own words are above)." \
        "Let this machine reach PyPI, or name a mirror in PIP_INDEX_URL, and run this again."

cargo build --quiet --example standard_webhooks "$@"
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
"$folder/venv/bin/python" tests/interop/python.py "$target/debug/examples/standard_webhooks"
