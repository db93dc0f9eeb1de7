/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ring is slept on by a futex, connections by epoll, and no thread can do both. So a thread sleeps for the loop: it
 * is told the sequence that the loop saw, sleeps until the ring has another, and says so by an eventfd. While the loop is
 * at work nobody sleeps on the ring, and its writer enters no kernel.
 *
 * The loop arms it once and hears from it once; what rings meanwhile is found by looking.
 */

#include "cluster/carrier_parts.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

static uint64_t number_of(int fd)
{
	uint64_t number;

	while (read(fd, &number, sizeof(number)) != (ssize_t)sizeof(number))
		if (errno != EINTR && errno != EAGAIN)
			control_fatal("sleep", "an eventfd cannot be read");
	return number;
}

static void say_number(int fd, uint64_t number)
{
	if (write(fd, &number, sizeof(number)) != (ssize_t)sizeof(number))
		control_fatal("sleep", "an eventfd cannot be written");
}

static void *sleep_main(void *arg)
{
	const struct carrier *carrier = arg;

	prctl(PR_SET_NAME, "carrier-sleeps");
	say_number(carrier->wake_fd, 1); /* all that a thread does as it begins is done */
	for (;;) {
		const uint32_t seen = (uint32_t)(number_of(carrier->arm_fd) - 1);

		while (rings_seq(&carrier->from_reader) == seen)
			rings_sleep(&carrier->from_reader, seen, UINT64_MAX);
		say_number(carrier->wake_fd, 1);
	}
	return NULL;
}

int sleep_init(struct carrier *carrier)
{
	pthread_t thread;
	int r;

	carrier->arm_fd = eventfd(0, EFD_CLOEXEC);
	carrier->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (carrier->arm_fd < 0 || carrier->wake_fd < 0)
		return -errno;
	r = pthread_create(&thread, NULL, sleep_main, carrier);
	if (r)
		return -r;
	number_of(carrier->wake_fd);
	return 0;
}

void sleep_arm(struct carrier *carrier, uint32_t seen)
{
	if (carrier->is_armed)
		return;
	carrier->is_armed = true;
	say_number(carrier->arm_fd, seen + UINT64_C(1));
}

void sleep_woke(struct carrier *carrier)
{
	number_of(carrier->wake_fd);
	carrier->is_armed = false;
}
