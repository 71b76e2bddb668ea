# What the tests need beside Rust; sourced, not run. `require_servers` finds it or installs it.

# found PROGRAM FOLDER... : whether PROGRAM is on PATH or in one of the folders.
found() {
    local program=$1 folder
    shift
    command -v "$program" >/dev/null && return
    for folder in "$@"; do
        [[ -x $folder/$program ]] && return
    done
    return 1
}

# Debian's names of the packages that are missing.
missing_packages() {
    found initdb /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin \
        /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin || echo postgresql
    found mariadbd /usr/sbin /usr/local/sbin /usr/libexec \
        /opt/homebrew/opt/mariadb/bin /usr/local/opt/mariadb/bin || echo mariadb-server
    # Shifts the clock of a server.
    [[ -n $(ls /usr/lib/*/faketime/libfaketimeMT.so.1 /usr/lib64/faketime/libfaketimeMT.so.1 \
        /usr/lib/faketime/libfaketimeMT.so.1 /opt/homebrew/lib/faketime/libfaketime.1.dylib \
        /usr/local/lib/faketime/libfaketime.1.dylib 2>/dev/null) ]] || echo libfaketime
    found pgbouncer /usr/sbin /usr/local/sbin /usr/local/bin /opt/homebrew/bin || echo pgbouncer
    [[ -n $(ls /usr/include/postgresql/libpq-fe.h /usr/local/include/libpq-fe.h \
        /opt/homebrew/opt/libpq/include/libpq-fe.h 2>/dev/null) ]] || echo libpq-dev
    found mariadb_config /usr/bin /usr/local/bin /opt/homebrew/bin || echo libmariadb-dev
    found git || echo git
    found cc || echo build-essential
}

require_servers() {
    local packages
    packages=$(missing_packages | xargs)
    if [[ -z $packages ]]; then
        echo "PostgreSQL, PgBouncer, MariaDB, libfaketime, git and a C compiler are here."
        return
    fi
    if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
        fail "the tests need $packages (Debian's names). Install them, for example by" \
            "\`sudo apt-get install $packages\` or \`brew install postgresql@17 pgbouncer mariadb libfaketime\`," \
            "and run this again. No server has to run: the tests start their own."
    fi
    echo "Installing $packages."
    export DEBIAN_FRONTEND=noninteractive
    # The tests start private servers; the packages' own must not take ports or memory.
    if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
        mkdir -p /etc/postgresql-common
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    fi
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold \
        $packages >/dev/null
}
