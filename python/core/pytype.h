/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What all types of the module have in common, and each of them. */

#include "python/core/py.h"

/* Makes the type of its full name, which lives on, and puts it into the module. Without Py_tp_new among its slots only
 * we make such objects. 0 and *ret; or -1 with an exception. */
int pytype_add(PyObject *module, const char *name, size_t size, PyType_Slot *slots,
	       PyTypeObject **ret);
/* The end of a dealloc, when what the object owned is gone. */
void pytype_free(PyObject *object);

/* Each puts its type into the module: the daemon that a program talks to, what is in a data set, a stream of batches, several
 * data sets as one in exact shares, a batch, a field of it, and a slot's memory mapped a second time, for as long as a device
 * has it registered. 0, or -1 with an exception. */
int pyclient_add_type(PyObject *module);
int pydataset_add_type(PyObject *module);
int pystream_add_type(PyObject *module);
int pymix_add_type(PyObject *module);
int pybatch_add_type(PyObject *module);
int pyfield_add_type(PyObject *module);
int pytwin_add_type(PyObject *module);
