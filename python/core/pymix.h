/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYMIX_H
#define PYTHON_CORE_PYMIX_H

/* Several data sets as one, in exact shares. */

#include "python/core/py.h"

/* 0, or -1 with an exception. */
int pymix_add_type(PyObject *module);

#endif
