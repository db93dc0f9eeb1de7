/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mix: what oa_mix_open(), oa_mix_next() and oa_mix_state() do, with exceptions for outcomes. The
 * library wants one thread at a time in a mix; oneaccess/mix.py sees to that.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "libaccess/libaccess.h"
#include "python/core/pycall.h"
#include "python/core/pyclient.h"
#include "python/core/pynames.h"
#include "python/core/pyrequest.h"
#include "python/core/pytype.h"

struct pymix_ask {
	struct oa_client *client;
	struct oa_mix_options options;
	struct pyrequest *request; /* n_parts */
	struct oa_mix_part *part;  /* n_parts */
	uint32_t n_parts, read;    /* read: requests that have begun */
	Py_buffer token;
};

static PyTypeObject *pymix_type;

/* ---- what is asked for ---- */

/* One part is (keywords of a Stream, weight). */
static int pymix_read_part(struct pymix_ask *ask, PyObject *pair)
{
	struct pyrequest *request = &ask->request[ask->read];
	struct oa_mix_part *part = &ask->part[ask->read];
	PyObject *keywords;
	unsigned int weight;

	if (!PyTuple_Check(pair)) {
		PyErr_SetString(PyExc_TypeError, "a part is a tuple of keywords and a weight");
		return -1;
	}
	if (!PyArg_ParseTuple(pair, "O!I:part", &PyDict_Type, &keywords, &weight))
		return -1;
	ask->read++;
	*part = (struct oa_mix_part){.options = &request->options, .weight = weight};
	return pyrequest_init(request, keywords);
}

static int pymix_read_parts(struct pymix_ask *ask, PyObject *parts)
{
	const Py_ssize_t n = PyTuple_Size(parts);

	ask->request = calloc((size_t)n + 1, sizeof(*ask->request));
	ask->part = calloc((size_t)n + 1, sizeof(*ask->part));
	if (ask->request == NULL || ask->part == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	ask->n_parts = (uint32_t)n;
	for (Py_ssize_t i = 0; i < n; i++)
		if (pymix_read_part(ask, PyTuple_GetItem(parts, i)) != 0)
			return -1;
	return 0;
}

static int pymix_read(struct pymix_ask *ask, PyObject *args, PyObject *kwargs,
		      PyObject **ret_client)
{
	static char *names[] = {"client", "parts", "batch", "flags", "epochs",
				"seed",   "end",   "unit",  "token", NULL};
	unsigned int batch, flags = 0;
	unsigned long long epochs = 0, seed = 0;
	int end = 0, unit = 0;
	PyObject *parts;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!I|IKKiiz*:Mix", names, ret_client,
					 &PyTuple_Type, &parts, &batch, &flags, &epochs, &seed,
					 &end, &unit, &ask->token))
		return -1;
	ask->options = (struct oa_mix_options){
	    .size = sizeof(ask->options),
	    .batch = batch,
	    .flags = flags,
	    .epochs = epochs,
	    .seed = seed,
	    .end = (enum oa_mix_end)end,
	    .unit = (enum oa_mix_unit)unit,
	    .token = ask->token.buf,
	    .token_size = (size_t)(ask->token.buf != NULL ? ask->token.len : 0),
	};
	return pymix_read_parts(ask, parts);
}

/* ---- opening ---- */

static int pymix_open(void *asked, void **ret, struct oa_error *error)
{
	const struct pymix_ask *ask = asked;
	struct oa_mix *mix = NULL;
	int r = oa_mix_open(ask->client, ask->part, ask->n_parts, &ask->options, &mix, error);

	*ret = mix;
	return r;
}

static void pymix_end(void *mix)
{
	oa_mix_close(mix);
}

static int pymix_next(void *mix, int timeout_ms, struct oa_batch **ret)
{
	return oa_mix_next(mix, timeout_ms, ret);
}

static const char *pymix_text(void *mix)
{
	return oa_mix_error_text(mix);
}

static const struct pycall_kind pymix_kind = {"mix", pymix_end, pymix_next, pymix_text};

static PyObject *pymix_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct pymix_ask ask = {.n_parts = 0};
	PyObject *object;
	bool is_writable;
	void *mix = NULL;

	if (pymix_read(&ask, args, kwargs, &object) == 0)
		ask.client = pyclient_of(object);
	if (ask.client != NULL)
		mix = pycall_open(pymix_open, &ask, pymix_end);
	is_writable = ask.options.unit == OA_MIX_SAMPLES || (ask.options.flags & OA_COPY);
	while (ask.read > 0)
		pyrequest_fini(&ask.request[--ask.read]);
	free(ask.request);
	free(ask.part);
	PyBuffer_Release(&ask.token);
	return mix == NULL ? NULL : pycall_new(type, &pymix_kind, mix, is_writable);
}

/* ---- calls ---- */

static int pymix_token(void *mix, void *data, size_t *size)
{
	return oa_mix_state(mix, data, size);
}

static PyObject *pymix_state(PyObject *object, PyObject *unused)
{
	struct oa_mix *mix = pycall_enter(object);
	PyObject *token;

	(void)unused;
	if (mix == NULL)
		return NULL;
	token = pycall_state(object, pymix_token, mix);
	pycall_leave(object);
	return token;
}

static int pymix_ask_names(void *mix, const struct pynames_ask *ask, char ***ret)
{
	return oa_mix_sample_names(mix, ask->part, ask->ids, ask->count, ask->timeout_ms, ret);
}

static PyObject *pymix_names(PyObject *object, PyObject *args)
{
	struct pynames_ask ask = {.timeout_ms = 0};
	Py_buffer ids;

	if (!PyArg_ParseTuple(args, "Iy*|i:names", &ask.part, &ids, &ask.timeout_ms))
		return NULL;
	return pynames_call(object, &ask, &ids, pymix_ask_names);
}

static PyMethodDef pymix_methods[] = {
    {"next", pycall_next, METH_VARARGS,
     "next(timeout_ms=-1): the next Batch; None at the end of all epochs."},
    {"names", pymix_names, METH_VARARGS,
     "names(part, ids, timeout_ms=0): oa_mix_sample_names(3) as a list; ids: memory of int64."},
    {"state", pymix_state, METH_NOARGS, "The resume token."},
    {"close", pycall_close, METH_NOARGS, "Gives the parts back; batches that are held stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pymix_slots[] = {
    {Py_tp_doc, "Mix(client, parts, batch, ...): oa_mix_open(3). parts: a tuple of (dict of "
		"Stream's keywords, weight). One thread at a time."},
    {Py_tp_new, pymix_new},
    {Py_tp_dealloc, pycall_dealloc},
    {Py_tp_methods, pymix_methods},
    {0, NULL},
};

int pymix_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Mix", sizeof(struct pycall_object), pymix_slots,
			  &pymix_type);
}
