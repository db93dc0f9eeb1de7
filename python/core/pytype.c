/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Types are made at run time, as the limited API wants it; so each object counts as a use of its type.
 */

#include "python/core/pytype.h"

#include <stdbool.h>
#include <string.h>

static bool pytype_has_new(const PyType_Slot *slot)
{
	while (slot->slot != 0 && slot->slot != Py_tp_new)
		slot++;
	return slot->slot != 0;
}

int pytype_add(PyObject *module, const char *name, size_t size, PyType_Slot *slots,
	       PyTypeObject **ret)
{
	PyType_Spec spec = {
	    .name = name,
	    .basicsize = (int)size,
	    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	    .slots = slots,
	};

	if (!pytype_has_new(slots))
		spec.flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
	*ret = (PyTypeObject *)PyType_FromSpec(&spec);
	return *ret == NULL
		   ? -1
		   : PyModule_AddObjectRef(module, strrchr(name, '.') + 1, (PyObject *)*ret);
}

void pytype_free(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	PyObject_Free(object);
	Py_DECREF(type);
}
