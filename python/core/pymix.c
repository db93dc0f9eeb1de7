/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mix: what oa_mix_open(), oa_mix_next() and oa_mix_state() do, with exceptions for outcomes. The
 * library wants one thread at a time in a mix; oneaccess/mix.py sees to that.
 */

#include "python/core/pymix.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "libaccess/libaccess.h"
#include "python/core/pybatch.h"
#include "python/core/pycall.h"
#include "python/core/pyclient.h"
#include "python/core/pyguard.h"
#include "python/core/pyoutcome.h"
#include "python/core/pyrequest.h"
#include "python/core/pytype.h"

struct pymix {
	PyObject base;
	struct oa_mix *mix;
	struct pycall_life life;
	bool is_writable;
};

struct pymix_ask {
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

static void pymix_forget(struct pymix_ask *ask)
{
	while (ask->read > 0)
		pyrequest_fini(&ask->request[--ask->read]);
	free(ask->request);
	free(ask->part);
	PyBuffer_Release(&ask->token);
}

/* ---- opening ---- */

/* 0, or -1 with an exception. */
static int pymix_open(struct oa_client *client, const struct pymix_ask *ask, struct oa_mix **ret)
{
	struct oa_error error = {.size = sizeof(error)};
	int r;

	do {
		Py_BEGIN_ALLOW_THREADS
			r = oa_mix_open(client, ask->part, ask->n_parts, &ask->options, ret,
					&error);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals() != 0) {
			if (r == 0)
				oa_mix_close(*ret);
			return -1;
		}
	} while (r == OA_E_INTERRUPTED);
	if (r == 0)
		return 0;
	pyoutcome_raise(r, error.text);
	return -1;
}

static PyObject *pymix_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct pymix_ask ask = {.n_parts = 0};
	struct oa_client *client = NULL;
	struct oa_mix *mix = NULL;
	struct pymix *self = NULL;
	PyObject *object;

	if (pymix_read(&ask, args, kwargs, &object) == 0)
		client = pyclient_of(object);
	if (client != NULL && pymix_open(client, &ask, &mix) == 0)
		self = PyObject_New(struct pymix, type);
	if (self == NULL) {
		oa_mix_close(mix);
	} else {
		pyguard_begin();
		self->mix = mix;
		self->life = (struct pycall_life){0};
		self->is_writable =
		    ask.options.unit == OA_MIX_SAMPLES || (ask.options.flags & OA_COPY);
	}
	pymix_forget(&ask);
	return (PyObject *)self;
}

/* ---- calls, and the end ---- */

static struct oa_mix *pymix_enter(PyObject *object)
{
	struct pymix *self = (struct pymix *)object;

	return pycall_enter(&self->life, "mix") ? self->mix : NULL;
}

static void pymix_end(struct pymix *self)
{
	struct oa_mix *mix = self->mix;

	self->mix = NULL;
	Py_BEGIN_ALLOW_THREADS
		oa_mix_close(mix);
	Py_END_ALLOW_THREADS
}

static void pymix_leave(PyObject *object)
{
	struct pymix *self = (struct pymix *)object;

	if (pycall_leave(&self->life))
		pymix_end(self);
}

static PyObject *pymix_close(PyObject *object, PyObject *unused)
{
	struct pymix *self = (struct pymix *)object;

	(void)unused;
	if (pycall_close(&self->life))
		pymix_end(self);
	Py_RETURN_NONE;
}

static void pymix_dealloc(PyObject *object)
{
	oa_mix_close(((struct pymix *)object)->mix);
	pytype_free(object);
}

static int pymix_call(void *mix, int timeout_ms, struct oa_batch **ret)
{
	return oa_mix_next(mix, timeout_ms, ret);
}

static PyObject *pymix_next(PyObject *object, PyObject *args)
{
	struct pymix *self = (struct pymix *)object;
	PyObject *made = NULL;
	struct oa_batch *batch;
	struct oa_mix *mix;
	int timeout_ms = -1, r;

	if (!PyArg_ParseTuple(args, "|i:next", &timeout_ms))
		return NULL;
	mix = pymix_enter(object);
	if (mix == NULL)
		return NULL;
	r = pycall_next(pymix_call, mix, timeout_ms, &self->life, &batch);
	if (r == 0)
		made = pybatch_new(batch, self->is_writable);
	else if (r == OA_E_END)
		made = Py_NewRef(Py_None);
	else if (r != INT_MIN)
		pycall_raise(r, oa_mix_error_text(mix), timeout_ms);
	pymix_leave(object);
	return made;
}

static int pymix_token(void *mix, void *data, size_t *size)
{
	return oa_mix_state(mix, data, size);
}

static PyObject *pymix_state(PyObject *object, PyObject *unused)
{
	struct oa_mix *mix = pymix_enter(object);
	PyObject *token;
	int code;

	(void)unused;
	if (mix == NULL)
		return NULL;
	token = pycall_state(pymix_token, mix, &code);
	if (code != 0)
		pyoutcome_raise(code, oa_mix_error_text(mix));
	pymix_leave(object);
	return token;
}

static PyMethodDef pymix_methods[] = {
    {"next", pymix_next, METH_VARARGS,
     "next(timeout_ms=-1): the next Batch; None at the end of all epochs."},
    {"state", pymix_state, METH_NOARGS, "The resume token."},
    {"close", pymix_close, METH_NOARGS, "Gives the parts back; batches that are held stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pymix_slots[] = {
    {Py_tp_doc, "Mix(client, parts, batch, ...): oa_mix_open(3). parts: a tuple of (dict of "
		"Stream's keywords, weight). One thread at a time."},
    {Py_tp_new, pymix_new},
    {Py_tp_dealloc, pymix_dealloc},
    {Py_tp_methods, pymix_methods},
    {0, NULL},
};

static PyType_Spec pymix_spec = {
    .name = "oneaccess._core.Mix",
    .basicsize = sizeof(struct pymix),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pymix_slots,
};

int pymix_add_type(PyObject *module)
{
	return pytype_add(module, &pymix_spec, "Mix", &pymix_type);
}
