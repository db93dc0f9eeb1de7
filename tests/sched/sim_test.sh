#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The simulation at 100 and 400 chunks an epoch, against its limits (bench/sim.c).
exec "${top_builddir:?set by make}/bench/sim" --quick
