/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYDATASET_H
#define PYTHON_CORE_PYDATASET_H

/* What is in a data set. */

#include "python/core/py.h"

/* 0, or -1 with an exception. */
int pydataset_add_type(PyObject *module);

#endif
