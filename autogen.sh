#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes ./configure in a fresh clone (a release tarball has it).
set -eu
cd "$(dirname "$0")"
exec autoreconf -fi
