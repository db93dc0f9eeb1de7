/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client: which daemon the streams are of. It has no connection of its own, so that there is
 * nothing to lose but a little memory.
 */

#include "python/core/pyclient.h"

#include <stdlib.h>
#include <string.h>
#include "python/core/pyoutcome.h"
#include "python/core/pytype.h"

struct pyclient {
	PyObject base;
	struct oa_client *client;
};

static PyTypeObject *pyclient_type;

/* A call that a signal interrupted goes on when its handler raised nothing. */
static int pyclient_connect(const char *socket, struct oa_client **ret)
{
	struct oa_error error = {.size = sizeof(error)};
	int r;

	do {
		Py_BEGIN_ALLOW_THREADS
			r = oa_connect(socket, ret, &error);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals() != 0) {
			if (r == 0)
				oa_disconnect(*ret);
			return -1;
		}
	} while (r == OA_E_INTERRUPTED);
	if (r == 0)
		return 0;
	pyoutcome_raise(r, error.text);
	return -1;
}

static PyObject *pyclient_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"socket", NULL};
	const char *socket = NULL;
	struct oa_client *client;
	struct pyclient *self;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:Client", names, &socket) ||
	    pyclient_connect(socket, &client) != 0)
		return NULL;
	self = PyObject_New(struct pyclient, type);
	if (self == NULL)
		oa_disconnect(client);
	else
		self->client = client;
	return (PyObject *)self;
}

static void pyclient_dealloc(PyObject *object)
{

	oa_disconnect(((struct pyclient *)object)->client);
	pytype_free(object);
}

struct oa_client *pyclient_of(PyObject *object)
{
	if (Py_IS_TYPE(object, pyclient_type))
		return ((struct pyclient *)object)->client;
	PyErr_Format(PyExc_TypeError, "a Client is needed, this is %R", object);
	return NULL;
}

static PyObject *pyclient_status(PyObject *object, PyObject *unused)
{
	struct oa_client *client = ((struct pyclient *)object)->client;
	struct oa_error error = {.size = sizeof(error)};
	PyObject *text;
	char *json = NULL;
	int r;

	(void)unused;
	do {
		Py_BEGIN_ALLOW_THREADS
			r = oa_status(client, &json, &error);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals() != 0) {
			free(json);
			return NULL;
		}
	} while (r == OA_E_INTERRUPTED);
	if (r != 0)
		return pyoutcome_raise(r, error.text);
	text = PyUnicode_DecodeUTF8(json, (Py_ssize_t)strlen(json), "replace");
	free(json);
	return text;
}

static PyMethodDef pyclient_methods[] = {
    {"status", pyclient_status, METH_NOARGS, "The node's status as JSON text."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pyclient_slots[] = {
    {Py_tp_doc, "Client(socket=None): the daemon at socket, or the usual one (oa_connect(3))."},
    {Py_tp_new, pyclient_new},
    {Py_tp_dealloc, pyclient_dealloc},
    {Py_tp_methods, pyclient_methods},
    {0, NULL},
};

static PyType_Spec pyclient_spec = {
    .name = "oneaccess._core.Client",
    .basicsize = sizeof(struct pyclient),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pyclient_slots,
};

int pyclient_add_type(PyObject *module)
{
	return pytype_add(module, &pyclient_spec, "Client", &pyclient_type);
}
