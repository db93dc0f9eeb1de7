/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A data set's samples, labels and class names, as they were when it was opened.
 */

#include <stdint.h>
#include <stdlib.h>
#include "libaccess/libaccess.h"
#include "python/core/pycall.h"
#include "python/core/pyclient.h"
#include "python/core/pytype.h"

static PyTypeObject *pydataset_type;

struct pydataset_ask {
	struct oa_client *client;
	const char *path;
};

static int pydataset_open(void *asked, void **ret, struct oa_error *error)
{
	const struct pydataset_ask *ask = asked;
	struct oa_dataset *dataset = NULL;
	int r = oa_dataset_open(ask->client, ask->path, 0, &dataset, error);

	*ret = dataset;
	return r;
}

static void pydataset_end(void *dataset)
{
	oa_dataset_close(dataset);
}

static const struct pycall_kind pydataset_kind = {.what = "dataset", .end = pydataset_end};

static PyObject *pydataset_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"client", "path", NULL};
	struct pydataset_ask ask;
	PyObject *object;
	void *dataset;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os:Dataset", names, &object, &ask.path))
		return NULL;
	ask.client = pyclient_of(object);
	if (ask.client == NULL)
		return NULL;
	dataset = pycall_open(pydataset_open, &ask, pydataset_end);
	return dataset == NULL ? NULL : pycall_new(type, &pydataset_kind, dataset, false);
}

static const struct oa_dataset *pydataset_of(PyObject *object)
{
	return ((struct pycall_object *)object)->of;
}

static PyObject *pydataset_get_count(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLongLong(oa_dataset_count(pydataset_of(object)));
}

/* Names of folders, which need not be text: as Python reads names of files. */
static PyObject *pydataset_get_classes(PyObject *object, void *closure)
{
	const struct oa_dataset *dataset = pydataset_of(object);
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

static PyObject *pydataset_get_version(PyObject *object, void *closure)
{
	(void)closure;
	return PyBytes_FromStringAndSize((const char *)oa_dataset_version(pydataset_of(object)),
					 32);
}

/* int64 of all samples as bytes. */
static PyObject *pydataset_labels(PyObject *object, PyObject *unused)
{
	const struct oa_dataset *dataset = pydataset_of(object);
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
    {"version", pydataset_get_version, NULL, "32 bytes, as in a Stream's state.", NULL},
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
    {Py_tp_dealloc, pycall_dealloc},
    {Py_tp_methods, pydataset_methods},
    {Py_tp_getset, pydataset_getset},
    {0, NULL},
};

int pydataset_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Dataset", sizeof(struct pycall_object),
			  pydataset_slots, &pydataset_type);
}
