/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Outcomes as exceptions.
 *
 * The classes are Python's (oneaccess/errors.py), as they inherit from several of its own; the module
 * is looked up when something is raised, which is no path that has to be quick.
 */

#include "python/core/pyoutcome.h"

#include <errno.h>
#include "libaccess/libaccess.h"

PyObject *pyoutcome_raise(int code, const char *text)
{
	PyObject *errors, *error;

	if (code == -ENOMEM)
		return PyErr_NoMemory();
	errors = PyImport_ImportModule("oneaccess.errors");
	if (errors == NULL)
		return NULL;
	error = PyObject_CallMethod(errors, "of_outcome", "iss", code, oa_error_name(code), text);
	Py_DECREF(errors);
	if (error == NULL)
		return NULL;
	PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_DECREF(error);
	return NULL;
}
