/* SPDX-License-Identifier: Apache-2.0 */

/* What another gate says: what is believed has its names, and is written again as the same bytes. */

#include "cluster/gate_hello.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *bytes, enum gate_hello_type type)
{
	struct gate_hello hello;
	uint8_t again[GATE_HELLO_BYTES];

	memset(&hello, 0x5a, sizeof(hello));
	if (gate_hello_read(bytes, type, &hello))
		return;
	if (hello.type != type || !gate_hello_is_name(hello.node) ||
	    !gate_hello_is_name(hello.cluster) || strlen(hello.domain) < 1 ||
	    hello.answer >= GATE_ANSWERS || hello.port > UINT16_MAX || hello.weight > UINT32_MAX)
		abort();
	gate_hello_write(&hello, again);
	if (memcmp(bytes, again, sizeof(again)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[GATE_HELLO_BYTES] = {0};

	if (size > 0)
		memcpy(bytes, data, BASE_MIN(size, sizeof(bytes)));
	check(bytes, GATE_HELLO_CALL);
	check(bytes, GATE_HELLO_ANSWER);
	gate_hello_is_go(bytes);
	return 0;
}
