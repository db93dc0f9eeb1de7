#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every pixel against torchvision itself, with Pillow 13.0.0, where a Python has both. PyTorch is large, so
# nothing is fetched: parity.sh holds the same specs against torchvision's arithmetic written out.
#	PARITY_TORCH_PYTHON=PATH	that Python (python3)
set -u
: "${top_srcdir:=.}" "${top_builddir:=.}"
skip() {
	echo "parity_torch: skipped: $1"
	exit 77
}

python=${PARITY_TORCH_PYTHON:-python3}
command -v "$python" >/dev/null || skip "no $python"
"$python" -c 'import torchvision, PIL; assert PIL.__version__ == "13.0.0"' 2>/dev/null ||
	skip "$python has no torchvision with Pillow 13.0.0; name one that has by PARITY_TORCH_PYTHON=PATH"

set -- "$top_srcdir"/tests/pipeline/data/*.jpg
for photo in "$top_builddir"/tests/pipeline/parity.tmp/photos/train/*/*.jpg; do # parity.sh's, if it made them
	[ -f "$photo" ] && set -- "$@" "$photo"
done
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top_srcdir/tests/pipeline/parity_torch.py" "$top_builddir/tests/pipeline/pixels" "$@"
