/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYTYPE_H
#define PYTHON_CORE_PYTYPE_H

/* What all types of the module have in common. */

#include "python/core/py.h"

/* Makes the type and puts it into the module by that name. 0 and *ret; or -1 with an exception. */
int pytype_add(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **ret);
/* The end of a dealloc, when what the object owned is gone. */
void pytype_free(PyObject *object);

#endif
