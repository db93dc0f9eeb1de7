/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A data set's samples, labels and class names, as they were when it was opened.
 */

#include "python/core/pydataset.h"

#include <stdint.h>
#include <stdlib.h>
#include "libaccess/libaccess.h"
#include "python/core/pyclient.h"
#include "python/core/pyoutcome.h"
#include "python/core/pytype.h"

struct pydataset {
	PyObject base;
	struct oa_dataset *dataset;
};

static PyTypeObject *pydataset_type;

/* 0, or -1 with an exception. */
static int pydataset_open(struct oa_client *client, const char *path, struct oa_dataset **ret)
{
	struct oa_error error = {.size = sizeof(error)};
	int r;

	do {
		Py_BEGIN_ALLOW_THREADS
			r = oa_dataset_open(client, path, 0, ret, &error);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals() != 0) {
			if (r == 0)
				oa_dataset_close(*ret);
			return -1;
		}
	} while (r == OA_E_INTERRUPTED);
	if (r == 0)
		return 0;
	pyoutcome_raise(r, error.text);
	return -1;
}

static PyObject *pydataset_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"client", "path", NULL};
	struct oa_dataset *dataset;
	struct oa_client *client;
	struct pydataset *self;
	PyObject *object;
	const char *path;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os:Dataset", names, &object, &path))
		return NULL;
	client = pyclient_of(object);
	if (client == NULL || pydataset_open(client, path, &dataset) != 0)
		return NULL;
	self = PyObject_New(struct pydataset, type);
	if (self == NULL)
		oa_dataset_close(dataset);
	else
		self->dataset = dataset;
	return (PyObject *)self;
}

static void pydataset_dealloc(PyObject *object)
{

	oa_dataset_close(((struct pydataset *)object)->dataset);
	pytype_free(object);
}

static PyObject *pydataset_get_count(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLongLong(oa_dataset_count(((struct pydataset *)object)->dataset));
}

/* Names of folders, which need not be text: as Python reads names of files. */
static PyObject *pydataset_get_classes(PyObject *object, void *closure)
{
	const struct oa_dataset *dataset = ((struct pydataset *)object)->dataset;
	uint32_t n = oa_dataset_classes(dataset);
	PyObject *classes = PyList_New((Py_ssize_t)n);

	(void)closure;
	for (uint32_t i = 0; classes != NULL && i < n; i++) {
		PyObject *name = PyUnicode_DecodeFSDefault(oa_dataset_class_name(dataset, i));

		if (name == NULL || PyList_SetItem(classes, (Py_ssize_t)i, name) != 0)
			Py_CLEAR(classes);
	}
	return classes;
}

/* int64 of all samples as bytes. */
static PyObject *pydataset_labels(PyObject *object, PyObject *unused)
{
	const struct oa_dataset *dataset = ((struct pydataset *)object)->dataset;
	uint64_t n = oa_dataset_count(dataset);
	PyObject *bytes;
	int64_t *label;

	(void)unused;
	if (n > PY_SSIZE_T_MAX / sizeof(*label))
		return PyErr_NoMemory();
	label = malloc((size_t)(n + 1) * sizeof(*label));
	if (label == NULL)
		return PyErr_NoMemory();
	Py_BEGIN_ALLOW_THREADS
		for (uint64_t i = 0; i < n; i++)
			label[i] = oa_dataset_label(dataset, (int64_t)i);
	Py_END_ALLOW_THREADS
	bytes = PyBytes_FromStringAndSize((const char *)label,
					  (Py_ssize_t)((size_t)n * sizeof(*label)));
	free(label);
	return bytes;
}

static PyGetSetDef pydataset_getset[] = {
    {"count", pydataset_get_count, NULL, "Samples.", NULL},
    {"classes", pydataset_get_classes, NULL, "Names of the classes, by label.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef pydataset_methods[] = {
    {"labels", pydataset_labels, METH_NOARGS, "The label of each sample: count int64 as bytes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pydataset_slots[] = {
    {Py_tp_doc, "Dataset(client, path): what is in it (oa_dataset_open(3))."},
    {Py_tp_new, pydataset_new},
    {Py_tp_dealloc, pydataset_dealloc},
    {Py_tp_methods, pydataset_methods},
    {Py_tp_getset, pydataset_getset},
    {0, NULL},
};

static PyType_Spec pydataset_spec = {
    .name = "oneaccess._core.Dataset",
    .basicsize = sizeof(struct pydataset),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pydataset_slots,
};

int pydataset_add_type(PyObject *module)
{
	return pytype_add(module, &pydataset_spec, "Dataset", &pydataset_type);
}
