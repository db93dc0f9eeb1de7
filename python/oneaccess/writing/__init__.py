# SPDX-License-Identifier: Apache-2.0
"""What writes files of data: data sets, outputs of models, tokens."""
