# SPDX-License-Identifier: Apache-2.0
"""Pipelines of other libraries, said in ours."""
