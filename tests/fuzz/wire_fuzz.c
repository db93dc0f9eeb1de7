/* SPDX-License-Identifier: Apache-2.0 */

/* Messages that anybody could have sent: parsed, every key of every kind asked for, each byte that
 * a getter lends read. */

#include "base/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* So that no compiler leaves out the reads. */
static volatile uint64_t fuzz_sink;

static uint64_t fuzz_read(const struct wire_in *in, uint16_t key)
{
	uint64_t sum = 0, number;
	const uint8_t *bytes;
	const void *lent;
	const char *text;
	size_t length;

	if (wire_get_u64(in, key, &number) == 0)
		sum += number;
	if (wire_get_string(in, key, &text) == 0)
		sum += strlen(text);
	if (wire_get_bytes(in, key, &lent, &length) == 0) {
		bytes = lent;
		for (size_t i = 0; i < length; i++)
			sum += bytes[i];
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_in in;
	int r;

	wire_in_init(&in);
	r = wire_in_parse(&in, data, size);
	if (r == 0) {
		for (uint16_t key = 0; key < 32; key++)
			fuzz_sink += fuzz_read(&in, key);
		if (in.size != size || wire_take_fd(&in, 0) != -1)
			abort();
	} else if (r != WIRE_E_BAD || in.data) {
		abort();
	}
	wire_in_fini(&in);
	return 0;
}
