# The checks that are more than one command; sourced by `check`.

# Rust files that are ours.
rust_files() {
    find outbox-* examples tests -name '*.rs' -not -path '*/target/*' | sort
}

file_lengths() {
    local file lines limit bad=0
    while read -r file; do
        lines=$(wc -l <"$file")
        limit=600
        [[ $file == outbox-*/src/lib.rs ]] && limit=119
        if ((lines > limit)); then
            echo "$file has $lines lines; at most $limit"
            bad=1
        fi
    done < <(rust_files)
    return $bad
}

# The first Rust block of a Markdown text on standard input.
first_rust_block() {
    awk '/^```rust/ { on = 1; next } /^```/ && on { exit } on'
}

# The same, of the front page of a crate that opens the block by a `cfg_attr`.
first_doc_block() {
    awk '/^#!\[cfg_attr\(.*```/ { on = 1; next } /^\/\/! ```/ && on { exit } on' "$1" |
        sed 's|^//! \{0,1\}||'
}

readme_example() {
    local library=outbox-sqlx/src/lib.rs lines
    lines=$(first_rust_block <README.md | wc -l)
    ((lines > 0 && lines <= 25)) || fail "README's example has $lines lines; 1 to 25 are allowed"
    diff -u <(first_rust_block <README.md) <(first_doc_block "$library") ||
        fail "README's example differs from that of $library"
}

# Every relative link of the pages leads to a file.
local_links() {
    local page target bad=0
    while read -r page; do
        while read -r target; do
            if [[ ! -e $(dirname "$page")/$target ]]; then
                echo "$page links to $target, which is not there"
                bad=1
            fi
        done < <(grep -oE '\]\([^)#:]+[)#]' "$page" | sed -E 's/^\]\(//; s/[)#]$//')
    done < <(git ls-files '*.md')
    return $bad
}

stated_rust_version() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    grep -q "Rust $version" README.md || fail "README does not say \"Rust $version\""
    # The checks below run on the active toolchain: where that is the oldest one, they prove it.
    if [[ $(rustc --version) != "rustc $version."* ]]; then
        echo "the active toolchain is newer ($(rustc --version))"
        if command -v rustup >/dev/null && rustup run "$version" rustc --version; then
            rustup run "$version" cargo check --workspace --features "$(tested_features)" --locked
        fi
    fi
}

# tree PACKAGE OPTION... : the crates that a package compiles for its users.
tree() {
    cargo tree --locked -e normal,build --prefix none -f '{p}' -p "$@" | cut -d' ' -f1 | sort -u
}

# without PACKAGE "CRATE..." OPTION... : fails where the package brings one of the crates.
without() {
    local package=$1 banned=$2 crates crate
    shift 2
    crates=$(tree "$package" "$@")
    for crate in $banned; do
        if grep -qx "$crate" <<<"$crates"; then
            fail "$package ($*) brings $crate"
        fi
    done
    echo "$package ${*:-with default features}: $(wc -l <<<"$crates") crates, none of: $banned"
}

# The database features that a crate has.
databases_of() {
    local feature
    for feature in postgres mysql sqlite; do
        if grep -qE "^$feature = " "$1/Cargo.toml"; then echo "$feature"; fi
    done
}

# features_of PACKAGE : its features, `default` excepted.
features_of() {
    sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z0-9-]*\) *= .*/\1/p' "$1/Cargo.toml" | grep -vx default
}

dependency_assertions() {
    without outbox-core "tokio sqlx sqlx-core diesel reqwest hyper"
    without outbox-core "sqlx sqlx-core diesel reqwest hyper" --all-features
    # sqlx's own drivers, libpq and libmysqlclient.
    without outbox-sqlx "sqlx-mysql sqlx-sqlite libsqlite3-sys diesel" \
        --no-default-features --features postgres
    without outbox-sqlx "sqlx-mysql sqlx-postgres diesel" --no-default-features --features sqlite
    if databases_of outbox-sqlx | grep -qx mysql; then
        without outbox-sqlx "sqlx-postgres sqlx-sqlite libsqlite3-sys diesel" \
            --no-default-features --features mysql
    fi
    without outbox-diesel "sqlx-core pq-sys mysqlclient-sys libsqlite3-sys" \
        --no-default-features --features postgres
    without outbox-diesel "sqlx-core pq-sys mysqlclient-sys libsqlite3-sys tokio-postgres" \
        --no-default-features --features mysql
    without outbox-http "sqlx-core diesel"
    without outbox-tower "sqlx-core diesel reqwest"
}

# Every dependency has a licence that `deny.toml` allows. `cargo deny` itself takes minutes to
# build, so it runs where it is installed, and this check of the same list runs everywhere.
licences() {
    local allowed bad=0 expression package
    allowed=$(sed -n '/^allow = \[/,/^\]/s/^ *"\(.*\)",$/\1/p' deny.toml)
    while IFS='|' read -r expression package; do
        if ! licence_allowed "$expression" "$allowed"; then
            echo "$package has the licence '$expression', which deny.toml does not allow"
            bad=1
        fi
    done < <(cargo tree --locked --workspace --all-features -e normal,build,dev --prefix none -f '{l}|{p}' |
        sed 's/ (\*)$//; /^$/d' | sort -u)
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny --all-features --log-level error check
    fi
    return $bad
}

# licence_allowed EXPRESSION LIST : whether one alternative holds listed licences only. (SPDX; the
# old `/` means OR. Parentheses group alternatives that are joined by AND.)
licence_allowed() {
    local alternative part
    if [[ $1 == *')'*' AND '* || $1 == *' AND ('* ]]; then
        local rest=${1//' AND '/$'\n'}
        while read -r part; do
            licence_allowed "${part//[()]/}" "$2" || return 1
        done <<<"$rest"
        return 0
    fi
    while read -r alternative; do
        local every=1
        while read -r part; do
            grep -qxF "$part" <<<"$2" || every=0
        done <<<"${alternative//' AND '/$'\n'}"
        ((every)) && return 0
    done < <(sed 's/[()]//g; s/ OR \|\//\n/g' <<<"$1")
    return 1
}
