# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What ./check and ./quickstart share: packages, the place of the builds, a fresh configure. Sourced
# with $top set to the source tree.
: "${top:?set by who sources this}"

# shellcheck disable=SC2034 # for who sources this
setup_build_packages=(gcc libc6-dev make pkgconf libevent-dev libjansson-dev libseccomp-dev
	libjpeg62-turbo-dev liblmdb-dev libspng-dev libtiff-dev libwebp-dev libgif-dev libavif-dev libheif-dev libjxl-dev libopenjp2-7-dev libsndfile1-dev libmpg123-dev libsoxr-dev
	libavformat-dev libavcodec-dev libswscale-dev
	libxxhash-dev libmd-dev libncurses-dev libssl-dev libcurl4-openssl-dev libexpat1-dev libibverbs-dev zlib1g-dev libzstd-dev)
setup_tree_packages=(autoconf automake libtool)

setup_fail() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# A git tree makes its configure; a release tarball brings it along.
setup_is_git() {
	[ -e "$top/.git" ] || [ ! -x "$top/configure" ]
}

# setup_packages PACKAGE...: installs what is missing, or says which packages that are.
setup_packages() {
	local package missing=() as_root=()

	setup_is_git && set -- "$@" "${setup_tree_packages[@]}"
	if ! command -v dpkg-query >/dev/null; then
		echo "No Debian packages here: configure will say which libraries are missing."
		return
	fi
	for package; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
			missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		sudo -n true 2>/dev/null ||
			setup_fail "these packages are missing; as root, run:
    apt-get install ${missing[*]}"
		as_root=(sudo -n)
	fi
	echo "Installing ${missing[*]}"
	setup_install "${as_root[@]}" || {
		"${as_root[@]}" apt-get -qq update || setup_fail "apt-get update failed: is there a network?"
		setup_install "${as_root[@]}" || setup_fail "apt-get install failed: ${missing[*]}"
	}
}

# Uses setup_packages' list.
setup_install() {
	"$@" env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq install --no-install-recommends "${missing[@]}" >/dev/null 2>&1
}

# Sets $builds, the folder of all builds: in the tree, or in the user's cache if that is read-only.
setup_builds() {
	if mkdir -p "$top/.build" 2>/dev/null && [ -w "$top/.build" ]; then
		builds=$top/.build
	else
		builds=${XDG_CACHE_HOME:-$HOME/.cache}/oneaccess/build
		mkdir -p "$builds" || setup_fail "cannot make $builds"
	fi
}

setup_configure_script() {
	[ -x "$top/configure" ] && [ ! -e "$top/.git" ] && return
	if [ -x "$top/configure" ] && [ -z "$(find "$top"/configure.ac "$top"/m4/oa_*.m4 "$top"/Makefile.am \
		"$top"/*/Makemodule.am -newer "$top/Makefile.in")" ] && [ -f "$top/build-aux/depcomp" ]; then
		return
	fi
	[ -w "$top" ] || setup_fail "$top has no configure and cannot be written: make one with ./autogen.sh in a copy"
	(cd "$top" && autoreconf -fi)
}

# setup_configure NAME ARGUMENT...: configures $builds/NAME; again only when the arguments change. By a relative path, so that a
# compiler cache knows what a build of the tarball compiles again.
setup_configure() {
	local folder=$builds/$1
	shift

	if [ "$(cat "$folder/arguments" 2>/dev/null)" = "$top $*" ] && [ -f "$folder/Makefile" ]; then
		cd "$folder"
		return
	fi
	rm -rf "$folder" # objects that were made otherwise would stay
	mkdir -p "$folder" && cd "$folder" || return
	"$(realpath --relative-to=. "$top")/configure" --quiet "$@" && echo "$top $*" >arguments
}

# setup_watch LABEL COMMAND...: runs it with its output in $log and, on a terminal, shows how far it is.
setup_watch() {
	local label=$1 begin=$SECONDS
	shift

	printf '\n+ %s\n' "$*" >>"$log"
	if [ ! -t 1 ]; then
		printf '%s ...' "$label"
		"$@" >>"$log" 2>&1 || { echo && return 1; }
		printf ' %d s\n' $((SECONDS - begin))
		return
	fi
	(set -o pipefail && "$@" 2>&1 | setup_count "$label") || { echo && return 1; }
	printf '\r%s ... %d s\n' "$label" $((SECONDS - begin))
}

# setup_count LABEL: lines to $log; on the terminal how many files were compiled of late.
setup_count() {
	local line compiled=0 begin=$SECONDS

	printf '%s ...' "$1"
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$log"
		case $line in
		'  CC '*)
			compiled=$((compiled + 1))
			printf '\r%s ... %d s, %d files' "$1" $((SECONDS - begin)) $compiled
			;;
		esac
	done
	printf '\r%*s' $((${#1} + 24)) ''
}

# setup_show FILE: the end of a log, then gives up.
setup_show() {
	tail -n 30 "$1" >&2
	setup_fail "that failed; all of it is in $1"
}
