#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every pixel against torchvision itself, with Pillow 13.0.0. PyTorch is large, so it is not fetched: Debian's (0.14) will
# do, with Pillow from pip in a virtual environment of the build tree. Where there is none, parity.sh alone holds the same
# specs against torchvision's arithmetic written out.
#	PARITY_TORCH_PYTHON=PATH	a Python that has both, of other versions; it gets parity.sh's photographs, too
set -u
: "${top_srcdir:=.}" "${top_builddir:=.}"
skip() {
	echo "parity_torch: skipped: $1"
	exit 77
}
has() { # has PYTHON: both of them
	"$1" -c 'import torchvision, PIL; assert PIL.__version__ == "13.0.0"' 2>/dev/null
}

work=$top_builddir/tests/pipeline/parity.tmp
set -- "$top_srcdir"/tests/pipeline/data/*.jpg
if [ -n "${PARITY_TORCH_PYTHON:-}" ]; then
	python=$PARITY_TORCH_PYTHON
	for photo in "$work"/photos/train/*/*.jpg; do # parity.sh's, if it made them
		[ -f "$photo" ] && set -- "$@" "$photo"
	done
else
	python=$work/torch/bin/python3
	"${PYTHON:-python3}" -c 'import torchvision' 2>/dev/null || skip "${PYTHON:-python3} has no torchvision"
	mkdir -p "$work"
	has "$python" || { "${PYTHON:-python3}" -m venv --system-site-packages "$work/torch" &&
		"$work/torch/bin/pip" install -q Pillow==13.0.0; } >"$work/torch.log" 2>&1 ||
		skip "no Pillow 13.0.0: $(tail -n 1 "$work/torch.log")"
fi
has "$python" || skip "$python has no torchvision with Pillow 13.0.0"
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top_srcdir/tests/pipeline/parity_torch.py" "$top_builddir/tests/pipeline/pixels" "$@"
