# SPDX-License-Identifier: Apache-2.0
"""Files, shards and tables of any content: a module for each kind, and what several of them share."""
