/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A field of a batch: memory with a shape.
 *
 * There are two ways to it: Python's buffers (NumPy, memoryview) and DLPack (PyTorch, JAX, NumPy,
 * TensorFlow). Each view keeps the batch's pin: a buffer by this object, a DLPack tensor by a reference
 * of its own to the hold, as it may be freed without the interpreter.
 */

#include "python/core/pyfield.h"
#include "python/core/pytype.h"

#include <stdlib.h>
#include <string.h>
#include "python/core/dlpack.h"

#define PYFIELD_DIMS 5

struct pyfield {
	PyObject base;
	struct pyhold *hold;
	const void *data;
	Py_ssize_t bytes, item;
	enum oa_dtype dtype;
	int ndim;
	Py_ssize_t shape[PYFIELD_DIMS], strides[PYFIELD_DIMS]; /* in bytes */
	enum oa_kind kind;
	PyObject *name, *lengths;
};

static PyTypeObject *pyfield_type;

/* ---- dtypes ---- */

static const struct pyfield_dtype {
	const char *name;
	const char *format; /* of a buffer; NULL: Python knows none */
	Py_ssize_t item;
	uint8_t code;
} pyfield_dtypes[] = {
    [OA_U8] = {"uint8", "B", 1, DLPACK_UINT},         [OA_F16] = {"float16", "e", 2, DLPACK_FLOAT},
    [OA_F32] = {"float32", "f", 4, DLPACK_FLOAT},     [OA_I64] = {"int64", "q", 8, DLPACK_INT},
    [OA_BF16] = {"bfloat16", NULL, 2, DLPACK_BFLOAT}, [OA_I8] = {"int8", "b", 1, DLPACK_INT},
    [OA_I16] = {"int16", "h", 2, DLPACK_INT},         [OA_I32] = {"int32", "i", 4, DLPACK_INT},
    [OA_U16] = {"uint16", "H", 2, DLPACK_UINT},       [OA_U32] = {"uint32", "I", 4, DLPACK_UINT},
    [OA_U64] = {"uint64", "Q", 8, DLPACK_UINT},       [OA_F64] = {"float64", "d", 8, DLPACK_FLOAT},
    [OA_BOOL] = {"bool", "?", 1, DLPACK_BOOL},
};

/* NULL, with an exception: of a newer library. */
static const struct pyfield_dtype *pyfield_dtype_of(enum oa_dtype dtype)
{
	if ((size_t)dtype < sizeof(pyfield_dtypes) / sizeof(*pyfield_dtypes) &&
	    pyfield_dtypes[dtype].name != NULL)
		return &pyfield_dtypes[dtype];
	PyErr_Format(PyExc_SystemError,
		     "libaccess says dtype %d, which this oneaccess does not know", (int)dtype);
	return NULL;
}

/* ---- birth and death ---- */

/* Copies of the samples' lengths, checked, as bytes; None: the field is dense. */
static PyObject *pyfield_lengths_of(const struct oa_field *field)
{
	PyObject *bytes;
	int64_t *lengths;

	if (field->lengths == NULL)
		return Py_NewRef(Py_None);
	bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(field->shape[0] * sizeof(*lengths)));
	if (bytes == NULL)
		return NULL;
	lengths = (int64_t *)(void *)PyBytes_AsString(bytes);
	for (uint32_t i = 0; i < field->shape[0]; i++)
		lengths[i] = (int64_t)oa_field_length(field, i);
	return bytes;
}

PyObject *pyfield_new(struct pyhold *hold, const struct oa_field *field)
{
	const struct pyfield_dtype *dtype = pyfield_dtype_of(field->dtype);
	struct pyfield *self;

	if (dtype == NULL)
		return NULL;
	self = PyObject_New(struct pyfield, pyfield_type);
	if (self == NULL)
		return NULL;
	self->hold = pyhold_ref(hold);
	self->data = field->data;
	self->bytes = (Py_ssize_t)field->bytes;
	self->item = dtype->item;
	self->dtype = field->dtype;
	self->ndim = (int)field->ndim;
	for (int i = 0; i < self->ndim; i++) {
		self->shape[i] = (Py_ssize_t)field->shape[i];
		self->strides[i] = (Py_ssize_t)field->strides[i];
	}
	self->kind = field->kind;
	self->name = PyUnicode_FromString(field->name);
	self->lengths = pyfield_lengths_of(field);
	if (self->name == NULL || self->lengths == NULL)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static void pyfield_dealloc(PyObject *object)
{
	struct pyfield *self = (struct pyfield *)object;

	pyhold_unref(self->hold);
	Py_XDECREF(self->name);
	Py_XDECREF(self->lengths);
	pytype_free(object);
}

/* ---- as a buffer ---- */

static int pyfield_refuse_buffer(const struct pyfield *self, int flags)
{
	if ((flags & PyBUF_FORMAT) && pyfield_dtypes[self->dtype].format == NULL)
		PyErr_Format(PyExc_BufferError,
			     "field \"%U\" is %s, which Python's buffers do not know: take it by "
			     "DLPack (PyTorch, JAX), or cast to float16 or float32 in the pipeline",
			     self->name, pyfield_dtypes[self->dtype].name);
	else if ((flags & PyBUF_WRITABLE) && !pyhold_is_writable(self->hold))
		PyErr_Format(
		    PyExc_BufferError,
		    "field \"%U\" is read-only, as other jobs see the same memory: open the "
		    "loader with copy=True for batches of your own",
		    self->name);
	else
		return 0;
	return -1;
}

static int pyfield_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct pyfield *self = (struct pyfield *)object;

	view->obj = NULL;
	if (pyfield_refuse_buffer(self, flags) != 0)
		return -1;
	view->buf = (void *)self->data;
	view->len = self->bytes;
	view->itemsize = self->item;
	view->readonly = !pyhold_is_writable(self->hold);
	view->ndim = self->ndim;
	view->format = flags & PyBUF_FORMAT ? (char *)pyfield_dtypes[self->dtype].format : NULL;
	view->shape = flags & PyBUF_ND ? self->shape : NULL;
	view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	view->obj = Py_NewRef(object);
	return 0;
}

/* ---- as a DLPack tensor ---- */

struct pyfield_lent { /* one allocation: the tensor in both forms' room, and its shape */
	union {
		struct dlpack_managed managed;
		struct dlpack_versioned versioned;
	};
	int64_t shape[PYFIELD_DIMS], strides[PYFIELD_DIMS];
};

static void pyfield_free_managed(struct dlpack_managed *managed)
{
	pyhold_unref(managed->context);
	free(managed);
}

static void pyfield_free_versioned(struct dlpack_versioned *versioned)
{
	pyhold_unref(versioned->context);
	free(versioned);
}

/* A capsule that nobody took has still the name it was born with. */
static void pyfield_drop_managed(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, DLPACK_NAME))
		pyfield_free_managed(PyCapsule_GetPointer(capsule, DLPACK_NAME));
}

static void pyfield_drop_versioned(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, DLPACK_NAME_VERSIONED))
		pyfield_free_versioned(PyCapsule_GetPointer(capsule, DLPACK_NAME_VERSIONED));
}

static void pyfield_fill_tensor(const struct pyfield *self, struct pyfield_lent *lent,
				struct dlpack_tensor *tensor)
{
	for (int i = 0; i < self->ndim; i++) {
		lent->shape[i] = self->shape[i];
		lent->strides[i] = self->strides[i] / self->item;
	}
	*tensor = (struct dlpack_tensor){
	    .data = (void *)self->data,
	    .device = {DLPACK_CPU, 0},
	    .ndim = self->ndim,
	    .dtype = {pyfield_dtypes[self->dtype].code, (uint8_t)(self->item * 8), 1},
	    .shape = lent->shape,
	    .strides = lent->strides,
	};
}

static PyObject *pyfield_lend(const struct pyfield *self)
{
	struct pyfield_lent *lent = calloc(1, sizeof(*lent));
	PyObject *capsule;

	if (lent == NULL)
		return PyErr_NoMemory();
	pyfield_fill_tensor(self, lent, &lent->managed.tensor);
	if (self->dtype == OA_BOOL) /* who knows this form alone may know no bool: bytes */
		lent->managed.tensor.dtype.code = DLPACK_UINT;
	lent->managed.context = pyhold_ref(self->hold);
	lent->managed.deleter = pyfield_free_managed;
	capsule = PyCapsule_New(lent, DLPACK_NAME, pyfield_drop_managed);
	if (capsule == NULL)
		pyfield_free_managed(&lent->managed);
	return capsule;
}

static PyObject *pyfield_lend_versioned(const struct pyfield *self)
{
	struct pyfield_lent *lent = calloc(1, sizeof(*lent));
	PyObject *capsule;

	if (lent == NULL)
		return PyErr_NoMemory();
	pyfield_fill_tensor(self, lent, &lent->versioned.tensor);
	lent->versioned.version.major = DLPACK_MAJOR;
	lent->versioned.version.minor = DLPACK_MINOR;
	lent->versioned.flags = pyhold_is_writable(self->hold) ? 0 : DLPACK_READ_ONLY;
	lent->versioned.context = pyhold_ref(self->hold);
	lent->versioned.deleter = pyfield_free_versioned;
	capsule = PyCapsule_New(lent, DLPACK_NAME_VERSIONED, pyfield_drop_versioned);
	if (capsule == NULL)
		pyfield_free_versioned(&lent->versioned);
	return capsule;
}

/* What the other library asked for that memory of this process cannot be. 0, or -1 with BufferError. */
static int pyfield_refuse_dlpack(PyObject *device, PyObject *copy)
{
	int type = DLPACK_CPU, id = 0;

	if (device != NULL && device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &id))
		return -1;
	if (type != DLPACK_CPU)
		PyErr_SetString(PyExc_BufferError,
				"batches are in the memory of the processor: copy "
				"them to the device");
	else if (copy == Py_True)
		PyErr_SetString(PyExc_BufferError,
				"batches are lent, not copied: open the loader with copy=True");
	else
		return 0;
	return -1;
}

static PyObject *pyfield_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
	int major = 0, minor = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
					 &version, &device, &copy) ||
	    (version != NULL && version != Py_None &&
	     !PyArg_ParseTuple(version, "ii", &major, &minor)) ||
	    pyfield_refuse_dlpack(device, copy) != 0)
		return NULL;
	return major >= DLPACK_MAJOR ? pyfield_lend_versioned((struct pyfield *)object)
				     : pyfield_lend((struct pyfield *)object);
}

static PyObject *pyfield_dlpack_device(PyObject *object, PyObject *unused)
{
	(void)object;
	(void)unused;
	return Py_BuildValue("(ii)", (int)DLPACK_CPU, 0);
}

/* ---- what it says of itself ---- */

static PyObject *pyfield_get_dtype(PyObject *object, void *closure)
{
	(void)closure;
	return PyUnicode_FromString(pyfield_dtypes[((struct pyfield *)object)->dtype].name);
}

static PyObject *pyfield_get_kind(PyObject *object, void *closure)
{
	const struct pyfield *self = (struct pyfield *)object;

	(void)closure;
	return PyUnicode_FromString(self->kind == OA_TEXT     ? "text"
				    : self->kind == OA_RAGGED ? "ragged"
							      : "dense");
}

static PyObject *pyfield_get_shape(PyObject *object, void *closure)
{
	const struct pyfield *self = (struct pyfield *)object;
	PyObject *shape = PyTuple_New(self->ndim);

	(void)closure;
	for (int i = 0; shape != NULL && i < self->ndim; i++) {
		PyObject *extent = PyLong_FromSsize_t(self->shape[i]);

		if (extent == NULL || PyTuple_SetItem(shape, i, extent) != 0)
			Py_CLEAR(shape);
	}
	return shape;
}

static PyGetSetDef pyfield_getset[] = {
    {"dtype", pyfield_get_dtype, NULL,
     "\"uint8\", \"float16\", \"bfloat16\", \"float32\", \"int64\", ...", NULL},
    {"kind", pyfield_get_kind, NULL, "\"dense\", \"ragged\" or \"text\"", NULL},
    {"shape", pyfield_get_shape, NULL, "Samples first.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef pyfield_members[] = {
    {"name", T_OBJECT_EX, offsetof(struct pyfield, name), READONLY, "\"image\", \"label\", ..."},
    {"lengths", T_OBJECT_EX, offsetof(struct pyfield, lengths), READONLY,
     "Of a ragged one: how long each sample is, int64 as bytes, checked; else None."},
    {"nbytes", T_PYSSIZET, offsetof(struct pyfield, bytes), READONLY, "Bytes of all of it."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef pyfield_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))pyfield_dlpack, METH_VARARGS | METH_KEYWORDS,
     "The field as a DLPack capsule, without a copy; it keeps the batch's slot."},
    {"__dlpack_device__", pyfield_dlpack_device, METH_NOARGS, "(1, 0): the processor."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pyfield_slots[] = {
    {Py_tp_doc, "A field of a batch, for buffers and DLPack; it keeps the batch's slot."},
    {Py_tp_dealloc, pyfield_dealloc},
    {Py_tp_methods, pyfield_methods},
    {Py_tp_getset, pyfield_getset},
    {Py_tp_members, pyfield_members},
    {Py_bf_getbuffer, pyfield_getbuffer},
    {0, NULL},
};

int pyfield_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Field", sizeof(struct pyfield), pyfield_slots,
			  &pyfield_type);
}
