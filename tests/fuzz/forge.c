/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/forge.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "shmring/plan_log.h"

#define BYTES (PLAN_LOG_HEAD + 5 * 4096)

/* Takes them off the end of the input. */
static void put_versions(const uint8_t *data, size_t *size, struct plan_log_head *head)
{
	const size_t n = *size ? BASE_MIN(data[*size - 1], PLAN_LOG_BEFORE) : 0;
	const size_t bytes = n * sizeof(head->before[0]);

	if (!n || *size - 1 < bytes)
		return;
	*size -= 1 + bytes;
	memcpy(head->before, data + *size, bytes);
}

int forge_plan_log(const uint8_t *data, size_t size, uint64_t n_samples)
{
	static uint8_t bytes[BYTES];
	uint64_t first = 0, end = 0;
	struct plan_log_head head = {.magic = PLAN_LOG_MAGIC,
				     .bytes = BYTES,
				     .room = BYTES - PLAN_LOG_HEAD,
				     .n_samples = n_samples,
				     .id = "a forged log"};
	int fd = base_memfd("fuzz", BYTES);

	memset(bytes, 0, sizeof(bytes));
	put_versions(data, &size, &head);
	if (size >= 16) {
		memcpy(&first, data, 8);
		memcpy(&end, data + 8, 8);
		data += 16;
		size -= 16;
	}
	atomic_init(&head.d_first, first);
	atomic_init(&head.d_end, end);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + PLAN_LOG_HEAD, data, BASE_MIN(size, (size_t)(BYTES - PLAN_LOG_HEAD)));
	if (fd < 0 || pwrite(fd, bytes, BYTES, 0) != BYTES)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */);
	return fd;
}
