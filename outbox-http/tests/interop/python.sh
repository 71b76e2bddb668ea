#!/bin/sh
# What we sign the Python library `standardwebhooks` verifies, and the other way round.
# Needs python3 with venv, and the package index.
set -eu
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "standardwebhooks>=1.0,<2"
cargo build --quiet --example standard_webhooks
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
"$folder/venv/bin/python" tests/interop/python.py "$target/debug/examples/standard_webhooks"
