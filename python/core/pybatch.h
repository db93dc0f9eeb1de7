/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A batch as the library gave it. */

#include <stdbool.h>
#include "libaccess/libaccess.h"
#include "python/core/py.h"

/* A new reference, which has taken over the batch; or NULL with an exception, the batch released. */
PyObject *pybatch_new(struct oa_batch *batch, bool is_writable);
/* The library's, as long as it is not released; or NULL with an exception. */
const struct oa_batch *pybatch_of(PyObject *batch);
/* The memory that its fields lie in, as long as the batch is not released. false with an exception. */
bool pybatch_slot(PyObject *batch, const void **ret, size_t *ret_bytes);
