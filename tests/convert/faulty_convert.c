/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-convert of the same objects, with form_make() wrapped by the linker: where makers come to the
 * file that the environment's FAULT_AT names, they do FAULT: crash, hang, or none of that.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/forms/form.h"

static uint8_t faulty_bytes[1 << 20];
static size_t faulty_size;
static const char *faulty_name;

/* Before any maker, which can open no file. */
__attribute__((constructor)) static void faulty_load(void)
{
	const char *path = getenv("FAULT_AT");
	FILE *in = path ? fopen(path, "rb") : NULL;

	faulty_name = getenv("FAULT");
	if (!in || !faulty_name) {
		fputs("faulty_convert: FAULT is missing, or FAULT_AT names no file\n", stderr);
		exit(2);
	}
	faulty_size = fread(faulty_bytes, 1, sizeof(faulty_bytes), in);
	fclose(in);
}

int __real_form_make(struct form_maker *maker, enum form_kind kind, const uint8_t *file,
		     size_t size, uint8_t **ret, size_t *ret_size);
int __wrap_form_make(struct form_maker *maker, enum form_kind kind, const uint8_t *file,
		     size_t size, uint8_t **ret, size_t *ret_size);
int __wrap_form_make(struct form_maker *maker, enum form_kind kind, const uint8_t *file,
		     size_t size, uint8_t **ret, size_t *ret_size)
{
	if (strcmp(faulty_name, "none") != 0 && size == faulty_size &&
	    memcmp(file, faulty_bytes, size) == 0) {
		if (strcmp(faulty_name, "crash") == 0)
			__builtin_trap();
		for (volatile uint64_t turns = 0;; turns = turns + 1)
			;
	}
	return __real_form_make(maker, kind, file, size, ret, ret_size);
}
