/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Types are made at run time, as the limited API wants it; so each object counts as a use of its type.
 */

#include "python/core/pytype.h"

int pytype_add(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **ret)
{
	*ret = (PyTypeObject *)PyType_FromSpec(spec);
	return *ret == NULL ? -1 : PyModule_AddObjectRef(module, name, (PyObject *)*ret);
}

void pytype_free(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	PyObject_Free(object);
	Py_DECREF(type);
}
