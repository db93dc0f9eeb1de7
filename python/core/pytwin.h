/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYTWIN_H
#define PYTHON_CORE_PYTWIN_H

/* A slot's memory, mapped a second time, for as long as a device has it registered. */

#include "python/core/py.h"

/* 0, or -1 with an exception. */
int pytwin_add_type(PyObject *module);

#endif
