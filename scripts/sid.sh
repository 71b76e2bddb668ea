# Programs of Debian's sid, unpacked and not installed; sourced, not run.

# unpack_from_sid PACKAGE PROGRAM FOLDER ARGUMENT... : puts a program, named by its path, into a folder, and
# runs it once with these arguments. Its libraries come with it.
unpack_from_sid() {
    local package=$1 program=$2 to=$3 apt=$3/apt archive
    shift 3
    local name=${program##*/}
    mkdir -p "$apt"/{lists/partial,cache/archives/partial} "$to/root"
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "http://deb.debian.org/debian sid main" >"$apt/sources.list"
    local options=(-q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
        -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
        -o Dir::Cache="$apt/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root
        -o Debug::NoLocking=true)
    apt-get "${options[@]}" update
    apt-get "${options[@]}" -y --no-install-recommends --download-only install "$package"
    for archive in "$apt"/cache/archives/*.deb; do
        dpkg -x "$archive" "$to/root"
    done
    rm -r "$apt"
    cat >"$to/$name" <<RUN
#!/bin/sh
root=\$(dirname "\$0")/root
libraries=\$root/usr/lib/\$(uname -m)-linux-gnu
loader=\$(echo "\$libraries"/ld-linux-*)
exec "\$loader" --library-path "\$libraries" "\$root$program" "\$@"
RUN
    chmod -R a+rX "$to"
    chmod a+x "$to/$name"
    "$to/$name" "$@"
}

# program_from_sid VARIABLE PACKAGE "PROGRAM ARGUMENT..." HINT [--if-available] : exports in VARIABLE the path of the
# program, unless it is set. With --if-available it is no failure that it can't be fetched: the script says
# so, and ends.
program_from_sid() {
    local variable=$1 package=$2 hint=$4 optional=${5:-} folder program arguments
    read -r program arguments <<<"$3"
    [[ -z ${!variable:-} ]] || return 0
    folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/$package
    if [[ ! -x $folder/${program##*/} ]]; then
        command -v apt-get >/dev/null || fail "$hint"
        # In a shell of its own, and not by `step`: `set -e` is off in a condition.
        if ! bash -c 'source scripts/lib.sh; source scripts/sid.sh; unpack_from_sid "$@"' \
            unpack "$package" "$program" "$folder" $arguments; then
            rm -rf "$folder"
            [[ $optional == --if-available ]] || fail "$package can't be fetched from Debian's sid"
            echo "NOT RUN: $package can't be fetched from Debian's sid, so that no test ran on it."
            exit 0
        fi
    fi
    export "$variable=$folder/${program##*/}"
}
