/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYSTREAM_H
#define PYTHON_CORE_PYSTREAM_H

/* A stream of batches. */

#include "python/core/py.h"

/* 0, or -1 with an exception. */
int pystream_add_type(PyObject *module);

#endif
