/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client: which daemon the streams are of. It has no connection of its own, so that there is
 * nothing to lose but a little memory.
 */

#include "python/core/pyclient.h"

#include <stdlib.h>
#include <string.h>
#include "python/core/pycall.h"
#include "python/core/pytype.h"

static PyTypeObject *pyclient_type;

static int pyclient_connect(void *socket, void **ret, struct oa_error *error)
{
	struct oa_client *client = NULL;
	int r = oa_connect(socket, &client, error);

	*ret = client;
	return r;
}

static void pyclient_end(void *client)
{
	oa_disconnect(client);
}

static const struct pycall_kind pyclient_kind = {.what = "client", .end = pyclient_end};

static PyObject *pyclient_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"socket", NULL};
	char *socket = NULL;
	void *client;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:Client", names, &socket))
		return NULL;
	client = pycall_open(pyclient_connect, socket, pyclient_end);
	return client == NULL ? NULL : pycall_new(type, &pyclient_kind, client, false);
}

struct oa_client *pyclient_of(PyObject *object)
{
	if (Py_IS_TYPE(object, pyclient_type))
		return ((struct pycall_object *)object)->of;
	PyErr_Format(PyExc_TypeError, "a Client is needed, this is %R", object);
	return NULL;
}

static int pyclient_ask(void *client, void **ret, struct oa_error *error)
{
	char *json = NULL;
	int r = oa_status(client, &json, error);

	*ret = json;
	return r;
}

static PyObject *pyclient_status(PyObject *object, PyObject *unused)
{
	char *json = pycall_open(pyclient_ask, pyclient_of(object), free);
	PyObject *text;

	(void)unused;
	if (json == NULL)
		return NULL;
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
    {Py_tp_dealloc, pycall_dealloc},
    {Py_tp_methods, pyclient_methods},
    {0, NULL},
};

int pyclient_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Client", sizeof(struct pycall_object),
			  pyclient_slots, &pyclient_type);
}
