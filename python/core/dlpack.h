/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How array libraries hand memory to each other: the structures of DLPack 1.0 and of the form before
 * it, in our words. Their layout is the standard's. */

#include <stdint.h>

#define DLPACK_MAJOR 1
#define DLPACK_MINOR 0
#define DLPACK_NAME "dltensor"
#define DLPACK_NAME_VERSIONED "dltensor_versioned"
#define DLPACK_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_IS_COPIED (UINT64_C(1) << 1)

enum dlpack_device_type { DLPACK_CPU = 1 };

enum dlpack_code {
	DLPACK_INT = 0,
	DLPACK_UINT = 1,
	DLPACK_FLOAT = 2,
	DLPACK_BFLOAT = 4,
	DLPACK_BOOL = 6
};

struct dlpack_device {
	int32_t type, id;
};

struct dlpack_dtype {
	uint8_t code, bits;
	uint16_t lanes;
};

struct dlpack_tensor {
	void *data;
	struct dlpack_device device;
	int32_t ndim;
	struct dlpack_dtype dtype;
	int64_t *shape, *strides; /* in elements */
	uint64_t byte_offset;
};

struct dlpack_managed { /* of DLPACK_NAME */
	struct dlpack_tensor tensor;
	void *context;
	void (*deleter)(struct dlpack_managed *self);
};

struct dlpack_versioned { /* of DLPACK_NAME_VERSIONED */
	struct {
		uint32_t major, minor;
	} version;
	void *context;
	void (*deleter)(struct dlpack_versioned *self);
	uint64_t flags;
	struct dlpack_tensor tensor;
};
