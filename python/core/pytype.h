/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYTYPE_H
#define PYTHON_CORE_PYTYPE_H

/* What all types of the module have in common. */

#include "python/core/py.h"

/* Makes the type of its full name, which lives on, and puts it into the module. Without Py_tp_new among its slots only
 * we make such objects. 0 and *ret; or -1 with an exception. */
int pytype_add(PyObject *module, const char *name, size_t size, PyType_Slot *slots,
	       PyTypeObject **ret);
/* The end of a dealloc, when what the object owned is gone. */
void pytype_free(PyObject *object);

#endif
