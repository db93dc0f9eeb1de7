/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The heads of Megatron-LM's .idx files. Pure; the bytes may be any. */

#include "base/npy.h"

#define MEGATRON_HEAD 34 /* bytes of an .idx that are looked at */

struct megatron {
	enum number number;
	uint64_t sequences, documents;
	/* i32 sizes [sequences]; i64 starts [sequences], in bytes of the .bin */
	uint64_t sizes_at, starts_at;
};
/* Of MEGATRON_HEAD bytes of an .idx of so many bytes. 0, NPY_E_NONE, NPY_E_BAD. */
int megatron_parse(const uint8_t *head, uint64_t bytes, struct megatron *ret, struct diag *diag);
