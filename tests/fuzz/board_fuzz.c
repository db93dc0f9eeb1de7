/* SPDX-License-Identifier: Apache-2.0 */

/* A board of arbitrary bytes, in a memfd sealed as ours are. What is let in must be usable to its
 * last byte. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shmring/board.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t lent; /* so that the reads are not left out */

/* The input's head says how long the memory is, up to a limit; what the input lacks is zero. */
static int memory_of(const uint8_t *data, size_t size)
{
	uint64_t bytes = size;
	int fd;

	if (size >= sizeof(struct layout_board))
		bytes = BASE_MIN(((const struct layout_board *)data)->bytes, UINT64_C(1) << 30);
	fd = base_memfd("fuzz", bytes);
	if (fd < 0 || pwrite(fd, data, BASE_MIN(size, bytes), 0) < 0)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
	return fd;
}

static uint64_t read_all(const struct board *board)
{
	uint64_t sum = 0;

	for (uint32_t slot = 0; slot < board->geometry.max_slots; slot++) {
		uint32_t last = board->geometry.chunk - 1;

		if (board_slot_read_watermark(board, slot) > board->geometry.chunk)
			abort();
		sum += board_slot_of(board, slot)->d_lap + board_status_of(board, slot)[last] +
		       (uint64_t)board_ids_of(board, slot)[last] +
		       board_grains_of(board, slot)[last];
	}
	if (board_slot_of(board, board->geometry.max_slots))
		abort();
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct board board;
	int fd, r;

	if (size == 0)
		return 0;
	fd = memory_of(data, size);
	r = board_attach(fd, &board);
	if (r == 0) {
		lent = read_all(&board);
		board_check(&board);
		board_detach(&board);
	} else if (r != BOARD_E_BAD) {
		abort();
	}
	close(fd);
	return 0;
}
