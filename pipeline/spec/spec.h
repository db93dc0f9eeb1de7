/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A spec's text to ops and back. Knows JSON and single ops; what ops mean together is shape.c's. */

#include "pipeline/spec/op.h"

/* Parses and checks text (hostile, need not be terminated), fills in defaults.
 * 0, PIPELINE_E_BAD with diag, -ENOMEM. */
int spec_parse(const char *text, size_t size, struct op_list *ret, struct diag *diag);

/* The canonical text: compact, keys sorted, every parameter there, each number in its shortest form
 * that reads back as the same double. Caller frees. NULL: out of memory. */
char *spec_canonical(const struct op_list *ops);
