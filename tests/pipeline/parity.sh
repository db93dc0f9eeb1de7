#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every pixel against Pillow 13.0.0, on real photographs and odd files where a make-photos is at
# chunk, else on tests/pipeline/data alone. Pillow is fetched by pip into a virtual environment of
# the build tree; without it there is nothing to compare with (golden.tsv stands in): skipped.
#	PARITY_PHOTOS=N	photographs to make (30)	PARITY_PYTHON=PATH	a Python with that Pillow
set -u
: "${top_srcdir:=.}" "${top_builddir:=.}"
skip() {
	echo "parity: skipped: $1"
	exit 77
}

work=$top_builddir/tests/pipeline/parity.tmp
mkdir -p "$work" || exit 1
python=${PARITY_PYTHON:-$work/venv/bin/python3}
if ! "$python" -c 'import PIL, pillow_heif, pillow_jxl; assert PIL.__version__ == "13.0.0"' 2>"$work/venv.log"; then
	command -v python3 >/dev/null || skip "no python3"
	{ python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q Pillow==13.0.0 pillow-heif==1.8.1 pillow-jxl-plugin==1.3.8; } \
		>"$work/venv.log" 2>&1 || skip "no Pillow 13.0.0: $(tail -n 1 "$work/venv.log")"
	python=$work/venv/bin/python3
fi

for maker in "$top_srcdir/tools/make-photos" "$top_srcdir/../shared/tools/make-photos"; do
	[ -x "$maker" ] || continue
	[ -e "$work/made" ] && break
	"$maker" "$work/photos" "${PARITY_PHOTOS:-30}" 1 >"$work/photos.log" 2>&1 && : >"$work/made"
	break
done
set -- "$top_srcdir"/tests/pipeline/data/*.jpg "$top_srcdir"/tests/pipeline/formats/*.* "$top_srcdir"/tests/pipeline/exif/*.* "$top_srcdir"/tests/pipeline/modern/*.*
if [ -e "$work/made" ]; then
	for photo in "$work"/photos/train/*/*.jpg "$work"/photos/specials/*.*; do
		[ -f "$photo" ] && set -- "$@" "$photo"
	done
else
	echo "parity: no photographs, only the computed pictures"
fi
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top_srcdir/tests/pipeline/parity.py" "$top_builddir/tests/pipeline/pixels" "$@"
