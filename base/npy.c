/* SPDX-License-Identifier: Apache-2.0 */

/*
 * NumPy's format: six bytes of magic, two of version, the length of the head (2 bytes, from version 2 on 4), the head,
 * the values. The head is a dict as Python writes it, of three members in any order:
 *
 *	{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 * Members are looked for in that text as words, no more of Python than that is understood, and each must be there once.
 */

#include "base/npy.h"

#include <stdio.h>

#include "base/little.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MOST_BYTES (UINT64_C(1) << 30) /* of a row */
#define NPY_MEND "save it anew: numpy.save(path, numpy.ascontiguousarray(array, dtype))"

static int npy_refuse(struct diag *diag, const char *what)
{
	return diag_fail(diag, NPY_E_BAD, "%s; " NPY_MEND, what);
}

/* What follows the member's name and colon; NULL: it is not there once. */
static const char *npy_member(const char *head, const char *name)
{
	char quoted[24];
	const char *at;

	snprintf(quoted, sizeof(quoted), "'%s':", name);
	at = strstr(head, quoted);
	if (!at || strstr(at + 1, quoted))
		return NULL;
	at += strlen(quoted);
	return at + strspn(at, " ");
}

static int npy_descr(const char *at, enum number *ret, struct diag *diag)
{
	char descr[8] = "";
	size_t length;

	if (!at || *at != '\'')
		return npy_refuse(diag, "its values are no plain numbers");
	length = strcspn(at + 1, "'");
	if (length >= sizeof(descr))
		return npy_refuse(diag, "its values are no plain numbers");
	memcpy(descr, at + 1, length);
	*ret = number_of_numpy(descr);
	if (*ret)
		return 0;
	return diag_fail(diag, NPY_E_BAD,
			 "its values are of type %s; batches have bool, whole numbers of 8 to 64 "
			 "bits and floats of 16 to 64, little endian; " NPY_MEND,
			 descr);
}

/* "(3, 4)", "(3,)" */
static int npy_shape(const char *at, struct npy *npy, struct diag *diag)
{
	if (!at || *at++ != '(')
		return npy_refuse(diag, "its head has no shape");
	for (npy->ndim = 0; *at != ')'; npy->ndim++) {
		uint64_t length;

		if (npy->ndim == NPY_MOST_DIMS)
			return npy_refuse(diag, "it has more than five dimensions");
		if (!base_parse_number(&at, INT64_MAX, &length))
			return npy_refuse(diag, "its head has no shape");
		npy->shape[npy->ndim] = length;
		if (*at == ',')
			at++;
		else if (*at != ')')
			return npy_refuse(diag, "its head has no shape");
		at += strspn(at, " ");
	}
	return npy->ndim ? 0 : npy_refuse(diag, "it is one number, and has no rows");
}

/* Rows fill the file. */
static int npy_rows(struct npy *npy, uint64_t bytes, struct diag *diag)
{
	const uint64_t each = number_bytes(npy->number);
	uint64_t row = 1;

	for (unsigned i = 1; i < npy->ndim; i++) {
		if (npy->shape[i] == 0 || npy->shape[i] > NPY_MOST_BYTES / 8 / row)
			return npy_refuse(diag, "its rows have no value, or more than 1 GiB");
		row *= npy->shape[i];
	}
	if ((bytes - npy->data_at) / (row * each) != npy->shape[0] ||
	    (bytes - npy->data_at) % (row * each) != 0)
		return diag_fail(diag, NPY_E_BAD,
				 "its head says %llu rows of %llu bytes, but %llu bytes follow; "
				 "the file is cut off or damaged: write it anew",
				 (unsigned long long)npy->shape[0],
				 (unsigned long long)(row * each),
				 (unsigned long long)(bytes - npy->data_at));
	npy->row_values = row;
	return 0;
}

static int npy_head(const char *head, struct npy *npy, struct diag *diag)
{
	const char *order = npy_member(head, "fortran_order");
	int r = npy_descr(npy_member(head, "descr"), &npy->number, diag);

	if (!r && (!order || strncmp(order, "False", 5) != 0))
		r = npy_refuse(diag,
			       "it is in Fortran's order, in which a row is not in one piece");
	return r ? r : npy_shape(npy_member(head, "shape"), npy, diag);
}

int npy_read(const uint8_t *data, size_t size, uint64_t bytes, struct npy *ret, struct diag *diag)
{
	_cleanup_free_ char *head = NULL;
	struct npy npy = {.data_at = 10};
	uint64_t length;
	int r;

	if (size < 12 || memcmp(data, NPY_MAGIC, 6) != 0)
		return NPY_E_NONE;
	if (data[6] < 1 || data[6] > 3)
		return npy_refuse(diag, "it is of an unknown version of .npy");
	length = little_16(data + 8);
	if (data[6] > 1) {
		length = little_32(data + 8);
		npy.data_at = 12;
	}
	if (length > size - npy.data_at)
		return npy_refuse(diag, "its head is cut off, or longer than 64 KiB");
	head = strndup((const char *)data + npy.data_at, length);
	if (!head)
		return npy_refuse(diag, "there is not enough memory for its head");
	npy.data_at += length;
	r = npy_head(head, &npy, diag);
	r = r ? r : npy_rows(&npy, bytes, diag);
	if (!r)
		*ret = npy;
	return r;
}

int npy_parse(const uint8_t *data, size_t size, uint64_t bytes, struct npy *ret, struct diag *diag)
{
	struct npy npy;
	int r = npy_read(data, size, bytes, &npy, diag);

	if (!r && npy.shape[0] == 0)
		r = npy_refuse(diag, "it has no row");
	if (!r)
		*ret = npy;
	return r;
}
