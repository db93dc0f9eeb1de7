/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYCLIENT_H
#define PYTHON_CORE_PYCLIENT_H

/* The daemon that a program talks to. */

#include "libaccess/libaccess.h"
#include "python/core/py.h"

/* NULL, with TypeError, when it is none. Borrowed of the object. */
struct oa_client *pyclient_of(PyObject *object);

#endif
