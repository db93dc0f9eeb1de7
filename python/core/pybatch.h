/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYBATCH_H
#define PYTHON_CORE_PYBATCH_H

/* A batch as the library gave it. */

#include <stdbool.h>
#include "libaccess/libaccess.h"
#include "python/core/py.h"

/* A new reference, which has taken over the batch; or NULL with an exception, the batch released. */
PyObject *pybatch_new(struct oa_batch *batch, bool is_writable);
/* 0, or -1 with an exception. */
int pybatch_add_type(PyObject *module);

#endif
