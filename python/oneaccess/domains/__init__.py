# SPDX-License-Identifier: Apache-2.0
"""Data sets of a field of work, as its tools write them: boxes and masks, sounds, slides, driving, robots, cells, genomes, graphs, weather."""
