/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keywords become options by a table: what is not in it is refused by name, what is has the type of
 * its member. None leaves a member at zero, which is the library's default.
 */

#include "python/core/pyrequest.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum pyrequest_kind {
	PYREQUEST_TEXT,
	PYREQUEST_U32,
	PYREQUEST_U64,
	PYREQUEST_I64,
	PYREQUEST_INT,
	PYREQUEST_DOUBLE,
	PYREQUEST_CALL,
	PYREQUEST_TOKEN,
	PYREQUEST_IDS,
	PYREQUEST_WEIGHTS,
	PYREQUEST_BLOCKS,
	PYREQUEST_CLASSES,
	PYREQUEST_OBJECTIVE,
	PYREQUEST_WHAT,
	PYREQUEST_SENTINELS,
};

#define PYREQUEST_OPTION(name, kind)                                                 \
	{                                                                            \
#name, PYREQUEST_##kind, offsetof(struct pyrequest, options.name), 0 \
	}
#define PYREQUEST_OF_OBJECTIVE(name, kind)                                             \
	{                                                                              \
#name, PYREQUEST_##kind, offsetof(struct pyrequest, objective.name), 0 \
	}
#define PYREQUEST_SAMPLER(name, member, kind)                                         \
	{                                                                             \
		name, PYREQUEST_##kind, offsetof(struct pyrequest, sampler.member), 1 \
	}

static const struct pyrequest_word {
	const char *name;
	enum pyrequest_kind kind;
	size_t at;
	int is_sampler;
} pyrequest_words[] = {
    PYREQUEST_OPTION(dataset, TEXT),
    PYREQUEST_OPTION(pipeline, TEXT),
    PYREQUEST_OPTION(batch, U32),
    PYREQUEST_OPTION(flags, U32),
    PYREQUEST_OPTION(epochs, U64),
    PYREQUEST_OPTION(job, TEXT),
    PYREQUEST_OPTION(bad, INT),
    PYREQUEST_OPTION(bad_budget, I64),
    PYREQUEST_OPTION(ranks, U32),
    PYREQUEST_OPTION(rank, U32),
    PYREQUEST_OPTION(local_ranks, U32),
    PYREQUEST_OPTION(local_first, U32),
    PYREQUEST_OPTION(token, TOKEN),
    PYREQUEST_OPTION(chunk, U32),
    PYREQUEST_OPTION(timeout_ms, INT),
    PYREQUEST_OPTION(progress, CALL),
    PYREQUEST_OPTION(order, INT),
    PYREQUEST_OPTION(seed, U64),
    PYREQUEST_OPTION(record, TEXT),
    PYREQUEST_OPTION(replay, TEXT),
    PYREQUEST_OPTION(reuse, U32),
    PYREQUEST_SAMPLER("ids", ids, IDS),
    PYREQUEST_SAMPLER("classes", classes, CLASSES),
    PYREQUEST_SAMPLER("split_from", from, DOUBLE),
    PYREQUEST_SAMPLER("split_to", to, DOUBLE),
    PYREQUEST_SAMPLER("split_seed", split_seed, U64),
    PYREQUEST_SAMPLER("weights", weights, WEIGHTS),
    PYREQUEST_SAMPLER("samples", samples, U64),
    PYREQUEST_SAMPLER("sampler_flags", flags, U32),
    PYREQUEST_SAMPLER("blocks", blocks, BLOCKS),
    PYREQUEST_SAMPLER("window", window, U32),
    {"objective", PYREQUEST_OBJECTIVE, 0, 0},
};

/* Of the dict that is the objective. */
static const struct pyrequest_word pyrequest_objective_words[] = {
    PYREQUEST_OF_OBJECTIVE(kind, INT),         PYREQUEST_OF_OBJECTIVE(probability, DOUBLE),
    PYREQUEST_OF_OBJECTIVE(mask, DOUBLE),      PYREQUEST_OF_OBJECTIVE(random, DOUBLE),
    PYREQUEST_OF_OBJECTIVE(mask_token, I64),   PYREQUEST_OF_OBJECTIVE(vocabulary, U64),
    PYREQUEST_OF_OBJECTIVE(what, WHAT),        PYREQUEST_OF_OBJECTIVE(density, DOUBLE),
    PYREQUEST_OF_OBJECTIVE(mean_span, DOUBLE), PYREQUEST_OF_OBJECTIVE(sentinels, SENTINELS),
    PYREQUEST_OF_OBJECTIVE(rate, DOUBLE),      PYREQUEST_OF_OBJECTIVE(swapped, DOUBLE),
    PYREQUEST_OF_OBJECTIVE(prefix, I64),       PYREQUEST_OF_OBJECTIVE(middle, I64),
    PYREQUEST_OF_OBJECTIVE(suffix, I64),       PYREQUEST_OF_OBJECTIVE(end, I64),
};

/* ---- values ---- */

/* What it raises is told and lost: progress is for people. */
static void pyrequest_progress(void *call, const char *text, uint64_t done, uint64_t total)
{
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *r = PyObject_CallFunction(call, "sKK", text, (unsigned long long)done,
					    (unsigned long long)total);

	if (r == NULL)
		PyErr_WriteUnraisable(call);
	Py_XDECREF(r);
	PyGILState_Release(state);
}

static int pyrequest_text(PyObject *value, const char **ret)
{
	Py_ssize_t length;

	*ret = PyUnicode_AsUTF8AndSize(value, &length);
	if (*ret == NULL)
		return -1;
	if (strlen(*ret) == (size_t)length)
		return 0;
	PyErr_SetString(PyExc_ValueError, "it has a zero byte");
	return -1;
}

/* A whole number between 0 and most. */
static int pyrequest_count(PyObject *value, unsigned long long most, unsigned long long *ret)
{
	PyObject *number = PyNumber_Index(value);

	if (number == NULL)
		return -1;
	*ret = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred())
		return -1;
	if (*ret <= most)
		return 0;
	PyErr_Format(PyExc_OverflowError, "it is more than %llu", most);
	return -1;
}

static int pyrequest_number(PyObject *value, long long least, long long most, long long *ret)
{
	PyObject *number = PyNumber_Index(value);

	if (number == NULL)
		return -1;
	*ret = PyLong_AsLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred())
		return -1;
	if (*ret >= least && *ret <= most)
		return 0;
	PyErr_Format(PyExc_OverflowError, "it is not between %lld and %lld", least, most);
	return -1;
}

/* Memory of whole items; it is held until the request ends. */
static int pyrequest_buffer(struct pyrequest *request, PyObject *value, size_t item,
			    const void **ret, uint64_t *ret_count)
{
	Py_buffer *buffer = &request->buffer[request->buffers];

	if (PyObject_GetBuffer(value, buffer, PyBUF_C_CONTIGUOUS) != 0)
		return -1;
	request->buffers++;
	if ((size_t)buffer->len % item != 0) {
		PyErr_Format(PyExc_ValueError, "%zd bytes are no items of %zu", buffer->len, item);
		return -1;
	}
	*ret = buffer->buf;
	*ret_count = (uint64_t)buffer->len / item;
	return 0;
}

static int pyrequest_classes(struct pyrequest *request, PyObject *value)
{
	Py_ssize_t n = PySequence_Size(value);

	if (n < 0 || (uint64_t)n > UINT32_MAX)
		return -1;
	request->classes = calloc((size_t)n + 1, sizeof(*request->classes));
	if (request->classes == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *name = PySequence_GetItem(value, i);
		int r = name == NULL ? -1 : pyrequest_text(name, &request->classes[i]);

		Py_XDECREF(name); /* the sequence keeps it */
		if (r != 0)
			return -1;
	}
	request->sampler.classes = request->classes;
	request->sampler.n_classes = (uint32_t)n;
	return 0;
}

static int pyrequest_memory(struct pyrequest *request, enum pyrequest_kind kind, PyObject *value)
{
	struct oa_sampler *sampler = &request->sampler;
	const size_t item = kind == PYREQUEST_TOKEN || kind == PYREQUEST_WHAT ? 1 : 8;
	const void *data;
	uint64_t count;

	if (pyrequest_buffer(request, value, item, &data, &count) != 0)
		return -1;
	if (kind == PYREQUEST_TOKEN) {
		request->options.token = data;
		request->options.token_size = count;
	} else if (kind == PYREQUEST_IDS) {
		sampler->ids = data;
		sampler->n_ids = count;
	} else if (kind == PYREQUEST_BLOCKS) {
		sampler->blocks = data;
		sampler->n_blocks = count;
	} else if (kind == PYREQUEST_WEIGHTS) {
		sampler->weights = data;
		sampler->n_weights = count;
	} else if (kind == PYREQUEST_WHAT) {
		request->objective.what = data;
		request->objective.n_what = count;
	} else {
		request->objective.sentinels = data;
		request->objective.n_sentinels = count;
	}
	return 0;
}

/* Numbers and texts: what one member takes. */
static int pyrequest_member(enum pyrequest_kind kind, PyObject *value, void *member)
{
	unsigned long long count = 0;
	long long number = 0;
	int r = 0;

	switch (kind) {
	case PYREQUEST_TEXT:
		return pyrequest_text(value, member);
	case PYREQUEST_U32:
		r = pyrequest_count(value, UINT32_MAX, &count);
		*(uint32_t *)member = (uint32_t)count;
		return r;
	case PYREQUEST_U64:
		r = pyrequest_count(value, UINT64_MAX, &count);
		*(uint64_t *)member = count;
		return r;
	case PYREQUEST_I64:
		r = pyrequest_number(value, INT64_MIN, INT64_MAX, &number);
		*(int64_t *)member = number;
		return r;
	case PYREQUEST_INT:
		r = pyrequest_number(value, INT_MIN, INT_MAX, &number);
		*(int *)member = (int)number;
		return r;
	default:
		*(double *)member = PyFloat_AsDouble(value);
		return PyErr_Occurred() ? -1 : 0;
	}
}

/* ---- all of them ---- */

static int pyrequest_objective(struct pyrequest *request, PyObject *value);

static const struct pyrequest_word *pyrequest_find(const struct pyrequest_word *words, size_t n,
						   PyObject *key)
{
	for (size_t i = 0; i < n; i++)
		if (PyUnicode_CompareWithASCIIString(key, words[i].name) == 0)
			return &words[i];
	PyErr_Format(PyExc_TypeError, "a stream has no option \"%U\"", key);
	return NULL;
}

static int pyrequest_set(struct pyrequest *request, const struct pyrequest_word *word,
			 PyObject *value)
{
	request->has_sampler |= word->is_sampler;
	switch (word->kind) {
	case PYREQUEST_CALL:
		request->options.progress = pyrequest_progress;
		request->options.progress_arg = value;
		return 0;
	case PYREQUEST_TOKEN:
	case PYREQUEST_IDS:
	case PYREQUEST_WEIGHTS:
	case PYREQUEST_BLOCKS:
	case PYREQUEST_WHAT:
	case PYREQUEST_SENTINELS:
		return pyrequest_memory(request, word->kind, value);
	case PYREQUEST_OBJECTIVE:
		return pyrequest_objective(request, value);
	case PYREQUEST_CLASSES:
		return pyrequest_classes(request, value);
	default:
		return pyrequest_member(word->kind, value, (char *)request + word->at);
	}
}

/* The exception that is set gets the keyword's name in front. Returns -1. */
static int pyrequest_blame(const char *name)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	if (type != NULL && !PyErr_GivenExceptionMatches(type, PyExc_MemoryError))
		PyErr_Format(type, "%s: %S", name, value);
	else
		PyErr_NoMemory();
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return -1;
}

static int pyrequest_read(struct pyrequest *request, const struct pyrequest_word *words, size_t n,
			  PyObject *from)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(from, &at, &key, &value)) {
		const struct pyrequest_word *word = pyrequest_find(words, n, key);

		if (word == NULL)
			return -1;
		if (value != Py_None && pyrequest_set(request, word, value) != 0)
			return pyrequest_blame(word->name);
	}
	return 0;
}

static int pyrequest_objective(struct pyrequest *request, PyObject *value)
{
	if (!PyDict_Check(value)) {
		PyErr_SetString(PyExc_TypeError, "it is no dict");
		return -1;
	}
	request->objective.size = sizeof(request->objective);
	request->options.objective = &request->objective;
	return pyrequest_read(
	    request, pyrequest_objective_words,
	    sizeof(pyrequest_objective_words) / sizeof(*pyrequest_objective_words), value);
}

int pyrequest_init(struct pyrequest *request, PyObject *kwargs)
{
	memset(request, 0, sizeof(*request));
	request->options.size = sizeof(request->options);
	request->sampler.size = sizeof(request->sampler);
	if (kwargs != NULL &&
	    pyrequest_read(request, pyrequest_words,
			   sizeof(pyrequest_words) / sizeof(*pyrequest_words), kwargs) != 0)
		return -1;
	if (request->has_sampler)
		request->options.sampler = &request->sampler;
	return 0;
}

void pyrequest_fini(struct pyrequest *request)
{
	while (request->buffers > 0)
		PyBuffer_Release(&request->buffer[--request->buffers]);
	free(request->classes);
}
