/* SPDX-License-Identifier: Apache-2.0 */

#include "python/core/pynames.h"

#include <stdlib.h>
#include <string.h>
#include "libaccess/libaccess.h"
#include "python/core/pycall.h"
#include "python/core/pyoutcome.h"

static PyObject *pynames_list(char **names, uint64_t count)
{
	PyObject *all = PyList_New((Py_ssize_t)count);

	for (uint64_t i = 0; all != NULL && i < count; i++) {
		PyObject *one = PyUnicode_DecodeFSDefault(names[i]);

		if (one == NULL || PyList_SetItem(all, (Py_ssize_t)i, one) != 0)
			Py_CLEAR(all);
	}
	return all;
}

static PyObject *pynames_ask(PyObject *object, const struct pynames_ask *ask, pynames_fn names_fn)
{
	const struct pycall_object *self = (struct pycall_object *)object;
	void *of = pycall_enter(object);
	PyObject *all = NULL;
	char **names;
	int r;

	if (of == NULL)
		return NULL;
	do {
		Py_BEGIN_ALLOW_THREADS
			r = names_fn(of, ask, &names);
		Py_END_ALLOW_THREADS
	} while (r == OA_E_INTERRUPTED && PyErr_CheckSignals() == 0);
	if (r == 0) {
		all = pynames_list(names, ask->count);
		free(names);
	} else if (!PyErr_Occurred()) {
		pyoutcome_raise(r, self->kind->text(of));
	}
	pycall_leave(object);
	return all;
}

PyObject *pynames_call(PyObject *object, struct pynames_ask *ask, Py_buffer *ids,
		       pynames_fn names_fn)
{
	PyObject *all = NULL;

	ask->ids = ids->buf;
	ask->count = (uint64_t)ids->len / sizeof(*ask->ids);
	if (ids->itemsize != sizeof(*ask->ids) || ids->len % (Py_ssize_t)sizeof(*ask->ids) != 0)
		PyErr_SetString(PyExc_ValueError, "ids is no memory of int64");
	else
		all = pynames_ask(object, ask, names_fn);
	PyBuffer_Release(ids);
	return all;
}
