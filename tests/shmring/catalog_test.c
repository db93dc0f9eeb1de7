/* SPDX-License-Identifier: Apache-2.0 */

/* Catalogues: what was written is read, nobody can change it, and a forged one is not let in. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/catalog.h"
#include "tests/shmring/suite.h"

static const char *const classes[] = {"ant", "bee", "cat"};
enum { SAMPLES = 7, CLASSES = 3, NAMES = 12 };

static struct catalog_draft draft_of(unsigned n_classes)
{
	struct catalog_head head = {
	    .n = SAMPLES, .n_classes = n_classes, .names_bytes = n_classes * 4};
	struct catalog_draft draft;

	memset(head.version, 0x5a, sizeof(head.version));
	ck_assert_int_eq(catalog_new(&head, &draft), 0);
	ck_assert_int_eq(catalog_begin(&draft), 0);
	for (unsigned i = 0; i < SAMPLES; i++)
		draft.label[i] = n_classes ? i % n_classes : 0;
	for (unsigned i = 0; i < n_classes; i++)
		catalog_add_class(&draft, classes[i]);
	return draft;
}

static int sealed(unsigned n_classes)
{
	struct catalog_draft draft = draft_of(n_classes);
	int fd = -1;

	ck_assert_int_eq(catalog_seal(&draft), 0);
	ck_assert_int_eq(catalog_take(&draft, &fd), 0);
	return fd;
}

START_TEST(what_was_written_is_read)
{
	for (unsigned n_classes = 0; n_classes <= CLASSES; n_classes += CLASSES) {
		int fd = sealed(n_classes);
		struct catalog catalog;

		ck_assert_int_eq(catalog_attach(fd, &catalog), 0);
		close(fd);
		ck_assert_uint_eq(catalog.head.n, SAMPLES);
		ck_assert_uint_eq(catalog.head.n_classes, n_classes);
		ck_assert_uint_eq(catalog.head.version[31], 0x5a);
		for (unsigned i = 0; i < SAMPLES; i++)
			ck_assert_uint_eq(catalog.label[i], n_classes ? i % n_classes : 0);
		for (unsigned i = 0; i < n_classes; i++)
			ck_assert_str_eq(catalog.names + catalog.start[i], classes[i]);
		catalog_detach(&catalog);
	}
}
END_TEST

START_TEST(nobody_changes_it)
{
	int fd = sealed(CLASSES);

	ck_assert_int_lt((int)pwrite(fd, "x", 1, 64), 0);
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	ck_assert_ptr_eq(mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, 0x0020 /* F_SEAL_EXEC */), 0);
	close(fd);
}
END_TEST

START_TEST(lacking_names_are_noticed)
{
	struct catalog_head head = {.n = 1, .n_classes = 2, .names_bytes = 8};
	struct catalog_draft draft;

	ck_assert_int_eq(catalog_new(&head, &draft), 0);
	ck_assert_int_eq(catalog_begin(&draft), 0);
	catalog_add_class(&draft, "much too long");
	catalog_add_class(&draft, "ant");
	ck_assert_int_eq(catalog_seal(&draft), -EINVAL);
	catalog_drop(&draft);
	head.n = UINT64_MAX;
	ck_assert_int_eq(catalog_new(&head, &draft), -EOVERFLOW);
}
END_TEST

/* Who has it, by whichever way, is seen until he has let go of it. */
START_TEST(what_is_lent_is_known)
{
	int fd = sealed(CLASSES), lent = -1, again;
	struct catalog catalog;

	ck_assert(!catalog_is_lent(fd));
	ck_assert_int_eq(catalog_lend(fd, &lent), 0);
	ck_assert(catalog_is_lent(fd));
	again = fcntl(lent, F_DUPFD_CLOEXEC, 0);
	close(lent);
	ck_assert(catalog_is_lent(fd));
	ck_assert_int_eq(catalog_lend(again, &lent), 0); /* opened anew, by who was given it */
	close(again);
	ck_assert(catalog_is_lent(fd));
	ck_assert_int_eq(catalog_attach(lent, &catalog), 0);
	close(lent);
	ck_assert(catalog_is_lent(fd));
	catalog_detach(&catalog);
	ck_assert(!catalog_is_lent(fd));
	close(fd);
}
END_TEST

/* Written beside the one who gives it away. */
START_TEST(another_process_may_write_it)
{
	struct catalog_head head = {.n = 1};
	struct catalog_draft draft;
	struct catalog catalog;
	int fd = -1, status = 0;
	pid_t pid;

	ck_assert_int_eq(catalog_new(&head, &draft), 0);
	pid = fork();
	if (pid == 0)
		_exit(catalog_begin(&draft) || catalog_seal(&draft));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(catalog_take(&draft, &fd), 0);
	ck_assert_int_eq(catalog_attach(fd, &catalog), 0);
	ck_assert_uint_eq(catalog.head.n, 1);
	catalog_detach(&catalog);
	ck_assert(!catalog_is_lent(fd));
	close(fd);
}
END_TEST

/* Each damage to a good one; offset -1: only the seals lack. */
static const struct {
	int offset;
	uint64_t value;
} damages[] = {
    {-1, 0},
    {0, 1},                    /* magic */
    {8, SAMPLES + 2},          /* one more than there is room for */
    {8, UINT64_MAX},           /* sums that overflow */
    {8, UINT64_C(1) << 62},    /* the same, when multiplied */
    {16, 2},                   /* fewer classes than starts */
    {16, UINT64_C(1) << 61},   /* */
    {24, NAMES + 1},           /* names past the end */
    {64, 3},                   /* label of no class */
    {96, 1},                   /* the first name does not begin at 0 */
    {104, 0},                  /* an empty name */
    {104, 5},                  /* no NUL at its end */
    {104, UINT64_MAX},         /* far away */
    {120, NAMES - 1},          /* the last ends early */
    {128, 0x0065656200746e61}, /* "ant\0bee\0" is fine: must be let in */
    {128, 0x0065656200740061}, /* a NUL inside */
    {132, 0x0074616361656562}, /* no NUL between two */
};

START_TEST(forged_ones_stay_out)
{
	struct catalog_draft draft = draft_of(CLASSES);
	uint64_t value = damages[_i].value;
	struct catalog catalog;
	bool is_good = damages[_i].offset == 128 && value == 0x0065656200746e61;

	memcpy(draft.map, &draft.head, sizeof(draft.head));
	if (damages[_i].offset >= 0)
		memcpy((uint8_t *)draft.map + damages[_i].offset, &value, sizeof(value));
	munmap(draft.map, draft.bytes);
	draft.map = NULL;
	if (damages[_i].offset >= 0)
		ck_assert_int_eq(
		    fcntl(draft.fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
	ck_assert_int_eq(catalog_attach(draft.fd, &catalog), is_good ? 0 : CATALOG_E_BAD);
	if (is_good)
		catalog_detach(&catalog);
	catalog_drop(&draft);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, what_was_written_is_read);
	tcase_add_test(tcase, nobody_changes_it);
	tcase_add_test(tcase, lacking_names_are_noticed);
	tcase_add_test(tcase, what_is_lent_is_known);
	tcase_add_test(tcase, another_process_may_write_it);
	tcase_add_loop_test(tcase, forged_ones_stay_out, 0, BASE_ARRAY_LEN(damages));
}

int main(void)
{
	return suite_run("catalog", add_tests);
}
