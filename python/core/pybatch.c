/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A batch: what the library says of it, and its fields. The pin is the hold's; the batch's object has
 * one reference to that, each view another one.
 */

#include "python/core/pybatch.h"

#include "python/core/pyfield.h"
#include "python/core/pyhold.h"
#include "python/core/pytype.h"

struct pybatch {
	PyObject base;
	struct pyhold *hold; /* NULL: released */
	struct oa_batch_info info;
};

static PyTypeObject *pybatch_type;

PyObject *pybatch_new(struct oa_batch *batch, bool is_writable)
{
	struct pyhold *hold = pyhold_new(batch, is_writable);
	struct pybatch *self;

	if (hold == NULL) {
		oa_release(batch);
		return PyErr_NoMemory();
	}
	self = PyObject_New(struct pybatch, pybatch_type);
	if (self == NULL) {
		pyhold_unref(hold);
		return NULL;
	}
	self->hold = hold;
	self->info = (struct oa_batch_info){.size = sizeof(self->info)};
	oa_batch_info(batch, &self->info);
	return (PyObject *)self;
}

static void pybatch_dealloc(PyObject *object)
{

	pyhold_unref(((struct pybatch *)object)->hold);
	pytype_free(object);
}

static PyObject *pybatch_release(PyObject *object, PyObject *unused)
{
	struct pybatch *self = (struct pybatch *)object;

	(void)unused;
	pyhold_unref(self->hold);
	self->hold = NULL;
	Py_RETURN_NONE;
}

/* ---- its fields ---- */

static bool pybatch_lives(const struct pybatch *self)
{
	if (self->hold != NULL)
		return true;
	PyErr_SetString(PyExc_ValueError, "the batch was released");
	return false;
}

static PyObject *pybatch_field(const struct pybatch *self, uint32_t index)
{
	struct oa_field field = {.size = sizeof(field)};

	if (oa_batch_field(pyhold_batch(self->hold), index, &field) == 0)
		return pyfield_new(self->hold, &field);
	PyErr_Format(PyExc_IndexError, "the batch has no field %u", (unsigned)index);
	return NULL;
}

static PyObject *pybatch_get_fields(PyObject *object, void *closure)
{
	const struct pybatch *self = (const struct pybatch *)object;
	PyObject *fields;

	(void)closure;
	if (!pybatch_lives(self))
		return NULL;
	fields = PyTuple_New((Py_ssize_t)self->info.n_fields);
	for (uint32_t i = 0; fields != NULL && i < self->info.n_fields; i++) {
		PyObject *field = pybatch_field(self, i);

		if (field == NULL || PyTuple_SetItem(fields, (Py_ssize_t)i, field) != 0)
			Py_CLEAR(fields);
	}
	return fields;
}

/* Bytes of their own: ids are few. */
static PyObject *pybatch_get_ids(PyObject *object, void *closure)
{
	const struct pybatch *self = (const struct pybatch *)object;

	(void)closure;
	if (!pybatch_lives(self))
		return NULL;
	return PyBytes_FromStringAndSize((const char *)self->info.ids,
					 (Py_ssize_t)(self->info.count * sizeof(int64_t)));
}

/* Of a mix: which part each sample is of; None: of none. */
static PyObject *pybatch_get_parts(PyObject *object, void *closure)
{
	const struct pybatch *self = (const struct pybatch *)object;

	(void)closure;
	if (!pybatch_lives(self))
		return NULL;
	if (self->info.parts == NULL)
		Py_RETURN_NONE;
	return PyBytes_FromStringAndSize((const char *)self->info.parts,
					 (Py_ssize_t)(self->info.count * sizeof(uint32_t)));
}

/* ---- what the library says of it ---- */

static PyObject *pybatch_get_is_last(PyObject *object, void *closure)
{
	(void)closure;
	return PyBool_FromLong(((struct pybatch *)object)->info.is_last);
}

/* (session, address), which is the same for the same memory, or None. */
static PyObject *pybatch_get_slot(PyObject *object, void *closure)
{
	const struct oa_batch_info *info = &((struct pybatch *)object)->info;

	(void)closure;
	if (info->slot == NULL)
		Py_RETURN_NONE;
	return Py_BuildValue("(KN)", (unsigned long long)info->session,
			     PyLong_FromVoidPtr((void *)info->slot));
}

const struct oa_batch *pybatch_of(PyObject *object)
{
	const struct pybatch *self = (struct pybatch *)object;

	if (Py_TYPE(object) != pybatch_type) {
		PyErr_SetString(PyExc_TypeError, "this is no Batch");
		return NULL;
	}
	return pybatch_lives(self) ? pyhold_batch(self->hold) : NULL;
}

bool pybatch_slot(PyObject *object, const void **ret, size_t *ret_bytes)
{
	const struct pybatch *self = (struct pybatch *)object;

	if (pybatch_of(object) == NULL)
		return false;
	if (self->info.slot == NULL) {
		PyErr_SetString(PyExc_ValueError, "the batch is in private memory");
		return false;
	}
	*ret = self->info.slot;
	*ret_bytes = (size_t)self->info.slot_bytes;
	return true;
}

static PyGetSetDef pybatch_getset[] = {
    {"fields", pybatch_get_fields, NULL, "A tuple of Field: the images, the labels, ...", NULL},
    {"ids", pybatch_get_ids, NULL, "The samples' numbers in the data set: count int64 as bytes.",
     NULL},
    {"parts", pybatch_get_parts, NULL,
     "Of a mix, the part that each sample is of: count uint32 as bytes; else None.", NULL},
    {"is_last", pybatch_get_is_last, NULL, "Of its epoch.", NULL},
    {"slot", pybatch_get_slot, NULL,
     "Which memory it lies in, (session, address), for Twin; None: in private memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define PYBATCH_SAYS(type, name, what)                                           \
	{                                                                        \
#name, type, offsetof(struct pybatch, info.name), READONLY, what \
	}
static PyMemberDef pybatch_members[] = {
    PYBATCH_SAYS(T_UINT, count, "Samples."),
    PYBATCH_SAYS(T_ULONGLONG, epoch, "From 0."),
    PYBATCH_SAYS(T_ULONGLONG, step, "Batches of the epoch before this one."),
    PYBATCH_SAYS(T_UINT, substituted, "Samples whose pixels are another sample's."),
    PYBATCH_SAYS(T_UINT, copied, "Samples that were copied together."),
    PYBATCH_SAYS(T_ULONGLONG, kept,
		 "Samples of the stream so far that became private copies, as they were held."),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef pybatch_methods[] = {
    {"release", pybatch_release, METH_NOARGS,
     "Lets go of the batch; its slot goes back when the last view of it has died, too."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pybatch_slots[] = {
    {Py_tp_doc, "A batch; its slot goes back when it and all views of it have died."},
    {Py_tp_dealloc, pybatch_dealloc},
    {Py_tp_methods, pybatch_methods},
    {Py_tp_getset, pybatch_getset},
    {Py_tp_members, pybatch_members},
    {0, NULL},
};

int pybatch_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Batch", sizeof(struct pybatch), pybatch_slots,
			  &pybatch_type);
}
