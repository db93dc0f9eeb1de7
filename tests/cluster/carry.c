/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For bench/carrier: two carriers on loopback, values one way: how many bytes a second, and what that costs both of them.
 *
 *	tests/cluster/carry plain|sealed CONNECTIONS BYTES SECONDS
 *
 * Prints MB/s, and microseconds of both carriers' CPU time a MB. The values' bytes are what lies in the ring: a reader that
 * copies them there, and one that copies them out, are not part of it.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cluster/post.h"

#define CARRY_AHEAD   \
	(UINT64_C(24) \
	 << 20) /* bytes under way: more than rings and sockets want, less than is dropped */
#define CARRY_GROUP 1
#define CARRY_MOST 8

struct carry {
	struct post from, to;
	uint32_t peer[CARRY_MOST];
	unsigned connections;
	uint32_t bytes;
};

static void join(struct carry *of, unsigned i, bool sealed)
{
	struct carrier_keys ours, theirs;
	struct value_head head;
	int pair[2];

	post_keys(i + 1, &ours, &theirs);
	post_tcp(pair);
	post_connect(&of->from, 100 + i, pair[0], sealed, &ours);
	post_connect(&of->to, 100 + i, pair[1], sealed, &theirs);
	of->peer[i] = post_met(&of->from);
	post_met(&of->to);
	head = post_head(VALUE_GROUP, of->peer[i], 0, CARRY_GROUP, 0, 0);
	post_say(&of->from, &head, NULL);
	post_next(&of->to, &head);
}

/* A value whose bytes are left as they are. false: no room. */
static bool say(struct carry *of, uint64_t sample)
{
	const struct value_head head =
	    post_head(VALUE_PUT, of->peer[sample % of->connections], 0, CARRY_GROUP,
		      sample % VALUE_MOST_SAMPLES, of->bytes);
	const uint32_t size = (uint32_t)sizeof(head) + head.bytes;
	uint8_t *place = rings_begin(&of->from.to_carrier, 0, size);

	if (!place)
		return false;
	memcpy(place, &head, sizeof(head));
	rings_end(&of->from.to_carrier, 0, &(struct rings_item){.bytes = size});
	return true;
}

static unsigned take(struct carry *of)
{
	struct rings_item item;
	unsigned n = 0;
	bool bad;

	for (; rings_look(&of->to.from_carrier, 0, &item, &bad); n++)
		rings_pass(&of->to.from_carrier, 0, &item);
	return n;
}

/* CPU time of a carrier so far. */
static double cpu_us(const struct post *post)
{
	char path[64], text[1024] = "";
	unsigned long user = 0, system = 0;
	const char *after;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)post->pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	after = strrchr(text, ')');
	ck_assert_ptr_nonnull(after);
	ck_assert_int_eq(
	    sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system),
	    2);
	return (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

/* Values that came within that time. */
static uint64_t carry_for(struct carry *of, uint64_t ns)
{
	const uint64_t until = base_now_ns() + ns;
	uint64_t said = 0, came = 0;

	while (base_now_ns() < until) {
		const uint32_t seen = rings_seq(&of->to.from_carrier);
		const uint64_t before = said + came;

		while ((said - came) * of->bytes < CARRY_AHEAD && say(of, said))
			said++;
		came += take(of);
		if (said + came == before)
			rings_sleep(&of->to.from_carrier, seen, 1000000);
	}
	for (const uint64_t last = came; came < said;) {
		usleep(1000);
		came += take(of);
		if (came == said)
			return last;
	}
	return came;
}

static struct carry carry;
static double seconds;
static bool is_sealed;

/* What post.h has is written for tests, and fails as they do. */
START_TEST(bench_carry)
{
	double mb, us;

	post_start(&carry.from, NULL);
	post_start(&carry.to, NULL);
	for (unsigned i = 0; i < carry.connections; i++)
		join(&carry, i, is_sealed);
	us = -cpu_us(&carry.from) - cpu_us(&carry.to);
	mb = (double)carry_for(&carry, (uint64_t)(seconds * 1e9)) * carry.bytes / 1e6;
	us += cpu_us(&carry.from) + cpu_us(&carry.to);
	post_stop(&carry.from);
	post_stop(&carry.to);
	printf("%.0f %.0f\n", mb / seconds, us / mb);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tcase = tcase_create("carry");
	Suite *suite = suite_create("carry");
	SRunner *runner;
	int failed;

	carry.connections = argc == 5 ? (unsigned)atoi(argv[2]) : 0;
	carry.bytes = argc == 5 ? (uint32_t)atoi(argv[3]) : 0;
	seconds = argc == 5 ? atof(argv[4]) : 0;
	is_sealed = argc == 5 && strcmp(argv[1], "sealed") == 0;
	if (carry.connections < 1 || carry.connections > CARRY_MOST || carry.bytes < 1 ||
	    carry.bytes > VALUE_MOST || seconds <= 0) {
		fprintf(stderr, "tests/cluster/carry plain|sealed CONNECTIONS BYTES SECONDS\n");
		return 2;
	}
	tcase_add_test(tcase, bench_carry);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
