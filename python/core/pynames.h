/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names of samples, of a stream or of a part of a mix. With the interpreter's lock, which it gives up meanwhile. */

#include <stdint.h>
#include "python/core/py.h"

struct pynames_ask {
	uint32_t part; /* of a mix */
	const int64_t *ids;
	uint64_t count;
	int timeout_ms;
};

/* oa_sample_names() or its like. */
typedef int (*pynames_fn)(void *of, const struct pynames_ask *ask, char ***ret);

/* A list of str, as files' names are read; or NULL with an exception. ids: int64s, released here. Of ask they are set
 * here. */
PyObject *pynames_call(PyObject *object, struct pynames_ask *ask, Py_buffer *ids,
		       pynames_fn names_fn);
