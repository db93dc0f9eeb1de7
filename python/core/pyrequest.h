/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options of a stream, from Python's keywords. */

#include "libaccess/libaccess.h"
#include "python/core/py.h"

#define PYREQUEST_BUFFERS 6

struct pyrequest {
	struct oa_options options; /* borrows from the keywords, which outlive it */
	struct oa_sampler sampler;
	struct oa_objective objective;
	int has_sampler;
	Py_buffer buffer[PYREQUEST_BUFFERS];
	int buffers;
	const char **classes;
};

/* 0, or -1 with an exception that names the keyword. kwargs may be NULL. */
int pyrequest_init(struct pyrequest *request, PyObject *kwargs);
void pyrequest_fini(struct pyrequest *request);
