/* SPDX-License-Identifier: Apache-2.0 */

/* text.c, bits.c, hash.c, kernel.c and cleanup.c: what has tables of answers. */

#include "base/base.h"
#include "base/bits.h"
#include "base/hash.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	uint64_t bytes;
	const char *text;
} formats[] = {
    {0, "0 B"},
    {1023, "1023 B"},
    {1024, "1 KiB"},
    {1536, "1.5 KiB"},
    {1048575, "1 MiB"},
    {UINT64_C(3) << 30, "3 GiB"},
    {UINT64_C(154140672), "147 MiB"},
    {UINT64_MAX, "16 EiB"},
};

START_TEST(sizes_are_written)
{
	char text[32];

	ck_assert_str_eq(base_format_bytes(formats[_i].bytes, text, sizeof(text)),
			 formats[_i].text);
}
END_TEST

static const struct {
	const char *text;
	int result;
	uint64_t bytes;
} sizes[] = {
    {"4096", 0, 4096},
    {"0", 0, 0},
    {"17B", 0, 17},
    {"64M", 0, UINT64_C(64) << 20},
    {"64k", 0, 65536},
    {"1.5G", 0, UINT64_C(3) << 29},
    {"2GiB", 0, UINT64_C(2) << 30},
    {"1.5 KiB", 0, 1536},
    {"0.1K", 0, 102},
    {"18446744073709551615", 0, UINT64_MAX},
    {"15E", 0, UINT64_C(15) << 60},
    {"16E", -ERANGE, 0},
    {"18446744073709551616", -ERANGE, 0},
    {"99999999999999999999999", -ERANGE, 0},
    {"", -EINVAL, 0},
    {"M", -EINVAL, 0},
    {"-1", -EINVAL, 0},
    {"+1", -EINVAL, 0},
    {"1.5", -EINVAL, 0},
    {"1.M", -EINVAL, 0},
    {".5M", -EINVAL, 0},
    {"1MB", -EINVAL, 0},
    {"1Mi", -EINVAL, 0},
    {"1X", -EINVAL, 0},
    {"1M ", -EINVAL, 0},
    {"1 2", -EINVAL, 0},
    {"0x10", -EINVAL, 0},
};

START_TEST(sizes_are_read)
{
	uint64_t bytes = 77;

	ck_assert_int_eq(base_parse_bytes(sizes[_i].text, &bytes), sizes[_i].result);
	ck_assert_uint_eq(bytes, sizes[_i].result ? 77 : sizes[_i].bytes);
}
END_TEST

static const struct {
	const char *text;
	uint64_t most, number;
	size_t length; /* 0: it is none */
} numbers[] = {
    {"0", 0, 0, 1},
    {"0017x", 17, 17, 4},
    {"18446744073709551615:", UINT64_MAX, UINT64_MAX, 20},
    {"18446744073709551616", UINT64_MAX, 0, 0},
    {"18", 17, 0, 0},
    {"", 17, 0, 0},
    {"-1", 17, 0, 0},
    {"+1", 17, 0, 0},
    {" 1", 17, 0, 0},
};

START_TEST(numbers_are_read)
{
	const char *text = numbers[_i].text;
	uint64_t number = 77;

	ck_assert(base_parse_number(&text, numbers[_i].most, &number) == (numbers[_i].length > 0));
	ck_assert_uint_eq(number, numbers[_i].length ? numbers[_i].number : 77);
	ck_assert_ptr_eq(text, numbers[_i].text + numbers[_i].length);
}
END_TEST

static const struct {
	const char *name;
	size_t size;
	const char *text;
} quotes[] = {
    {"plain.jpg", 64, "plain.jpg"},
    {"with space", 64, "with space"},
    {"a\nb\x7f", 64, "a\\x0ab\\x7f"},
    {"say \"x\\y\"", 64, "say \\x22x\\x5cy\\x22"},
    {"gr\xc3\xbc\xc3\x9f", 64, "gr\xc3\xbc\xc3\x9f"},
    {"\xe2\x82\xac \xf0\x9f\x98\x80", 64, "\xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\xff\xfe", 64, "\\xff\\xfe"},
    {"\xc3", 64, "\\xc3"},
    {"\xe2\x82", 64, "\\xe2\\x82"},
    {"\xc0\xaf", 64, "\\xc0\\xaf"},          /* "/" in a long form */
    {"\xe0\x80\xaf", 64, "\\xe0\\x80\\xaf"}, /* the same, longer */
    {"\xed\xa0\x80", 64, "\\xed\\xa0\\x80"}, /* half of a UTF-16 pair */
    {"\xc2\x9b", 64, "\\xc2\\x9b"},          /* a C1 control: CSI */
    {"\xf4\x90\x80\x80", 64, "\\xf4\\x90\\x80\\x80"},
    {"1234567", 8, "1234567"},
    {"12345678", 8, "1234..."},
    {"123\n", 8, "123\\x0a"},
    {"1234\n", 8, "1234..."},
    {"12\xc3\xbc\xc3\xbcxx", 8, "12\xc3\xbc..."},
    {"123\xc3\xbc\xc3\xbcxx", 8, "123..."},
    {"12345678", 4, "..."},
    {"12345678", 2, "."},
    {"12345678", 1, ""},
};

START_TEST(names_stand_in_one_line)
{
	char text[64];

	memset(text, 'z', sizeof(text));
	ck_assert_ptr_eq(base_quote(quotes[_i].name, text, quotes[_i].size), text);
	ck_assert_str_eq(text, quotes[_i].text);
	if (quotes[_i].size < sizeof(text))
		ck_assert_int_eq(text[quotes[_i].size], 'z');
}
END_TEST

START_TEST(diagnoses_are_terminated_and_visible)
{
	static char name[2000];
	struct diag diag;

	memset(name, 'n', sizeof(name) - 1);
	errno = EBUSY;
	diag_set(&diag, "%s: \"%s\"\nnext", "a\x1b[2J", "b");
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_str_eq(diag.text, "a\\x1b[2J: \"b\"\\x0anext");
	diag_set(&diag, "%s", name);
	ck_assert_uint_eq(strlen(diag.text), sizeof(diag.text) - 1);
	ck_assert_str_eq(diag.text + sizeof(diag.text) - 5, "n...");
	diag_set(NULL, "nobody asked");
}
END_TEST

static const uint64_t lengths[] = {0, 1, 63, 64, 65, 127, 128, 1000};

START_TEST(bitmaps_keep_their_tail_clear)
{
	uint64_t bits[18], n = lengths[_i], odd = 0;

	memset(bits, 0, sizeof(bits));
	bits_fill(bits, n);
	ck_assert_uint_eq(bits_count(bits, n), n);
	ck_assert_uint_eq(bits_count(bits, BASE_ARRAY_LEN(bits) * 64), n);
	for (uint64_t i = 0; i < n; i += 2, odd++)
		bits_clear(bits, i);
	for (uint64_t i = 0; i < n; i++)
		ck_assert_int_eq(bits_test(bits, i), i % 2);
	ck_assert_uint_eq(bits_count(bits, n), n - odd);
	for (uint64_t i = 0; i < n; i += 2)
		bits_set(bits, i);
	ck_assert_uint_eq(bits_count(bits, n), n);
}
END_TEST

/* FIPS 180-4 examples; the checksum of nothing as the XXH3 specification gives it. */
START_TEST(hashes_are_the_published_ones)
{
	static const char text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	struct hash_id whole, parts;
	struct hash *hash;
	char hex[65];

	hash_of("abc", 3, &whole);
	ck_assert_str_eq(hash_hex(&whole, hex),
			 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_of(text, strlen(text), &whole);
	ck_assert_str_eq(hash_hex(&whole, hex),
			 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	ck_assert_int_eq(hash_new(&hash), 0);
	for (const char *c = text; *c; c++)
		hash_add(hash, c, 1);
	hash_finish(hash, &parts);
	hash_free(hash);
	ck_assert_mem_eq(&parts, &whole, sizeof(whole));
	ck_assert_uint_eq(hash_checksum("", 0), UINT64_C(0x2d06800538d394c2));
}
END_TEST

START_TEST(numbers_are_hashed_little_endian)
{
	static const uint8_t bytes[8] = {8, 7, 6, 5, 4, 3, 2, 1};
	struct hash_id of_bytes, of_number;
	struct hash *hash;

	hash_of(bytes, sizeof(bytes), &of_bytes);
	ck_assert_int_eq(hash_new(&hash), 0);
	hash_add_u64(hash, 0x0102030405060708);
	hash_finish(hash, &of_number);
	hash_freep(&hash);
	ck_assert_mem_eq(&of_bytes, &of_number, sizeof(of_bytes));
}
END_TEST

/* In a process of its own, which is not root's: root may open any file for writing. */
static int write_to_memory_as_somebody(void)
{
	_cleanup_close_ int fd = -1, again = -1;
	char path[64];

	if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			       setresuid(65534, 65534, 65534)))
		return 1;
	prctl(PR_SET_DUMPABLE, 1); /* else its own /proc/self is closed to it, too */
	fd = base_memfd("test", base_page_size());
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || again < 0)
		return 2;
	return open(path, O_RDWR | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 3;
}

START_TEST(memory_is_shared_read_only)
{
	_cleanup_close_ int fd = base_memfd("test", 3 * base_page_size());
	struct stat status;
	int ended;
	pid_t pid;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fstat(fd, &status), 0);
	ck_assert_uint_eq((uint64_t)status.st_size, 3 * base_page_size());
	ck_assert_uint_eq(status.st_mode & 0777, 0400);
	ck_assert_int_eq(status.st_blocks, 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	ck_assert_int_eq(base_memfd("test", UINT64_MAX), -EFBIG);
	pid = fork();
	if (pid == 0)
		_exit(write_to_memory_as_somebody());
	ck_assert_int_eq(waitpid(pid, &ended, 0), pid);
	ck_assert_int_eq(ended, 0);
}
END_TEST

START_TEST(owners_give_up_by_an_explicit_take)
{
	char *text = strdup("mine");
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), kept;

	{
		_cleanup_free_ char *owner = text;
		_cleanup_close_ int owned = fd;

		text = base_take_ptr(owner);
		kept = base_take_fd(&owned);
		ck_assert_ptr_null(owner);
		ck_assert_int_eq(owned, -1);
	}
	ck_assert_str_eq(text, "mine");
	free(text);
	ck_assert_int_eq(kept, fd);
	errno = EBUSY;
	base_close(&kept);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(kept, -1);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	base_close(&kept);
}
END_TEST

START_TEST(random_bytes_differ)
{
	uint8_t a[300] = {0}, b[300] = {0};
	uint64_t before_ns = base_now_ns();

	ck_assert_int_eq(base_random(a, sizeof(a)), 0);
	ck_assert_int_eq(base_random(b, sizeof(b)), 0);
	ck_assert_int_ne(memcmp(a, b, sizeof(a)), 0);
	ck_assert_int_ne(memcmp(a + 250, b + 250, 50), 0);
	ck_assert_uint_ge(base_now_ns(), before_ns);
}
END_TEST

START_TEST(variables_count_when_they_say_something)
{
	setenv("TEXT_TEST_A", "", 1);
	setenv("TEXT_TEST_B", "b", 1);
	unsetenv("TEXT_TEST_C");
	ck_assert_ptr_null(base_variable("TEXT_TEST_A"));
	ck_assert_ptr_null(base_variable("TEXT_TEST_C", "TEXT_TEST_A"));
	ck_assert_str_eq(base_variable("TEXT_TEST_C", "TEXT_TEST_A", "TEXT_TEST_B"), "b");
	setenv("TEXT_TEST_C", "c", 1);
	ck_assert_str_eq(base_variable("TEXT_TEST_C", "TEXT_TEST_B"), "c");
}
END_TEST

START_TEST(texts_are_made_and_sorted)
{
	char *texts[] = {base_format("%s%d", "b", 1), base_format("a%%"), base_format("%s", "")};

	qsort(texts, BASE_ARRAY_LEN(texts), sizeof(texts[0]), base_compare_texts);
	ck_assert_str_eq(texts[0], "");
	ck_assert_str_eq(texts[1], "a%");
	ck_assert_str_eq(texts[2], "b1");
	for (size_t i = 0; i < BASE_ARRAY_LEN(texts); i++)
		free(texts[i]);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_loop_test(tests, sizes_are_written, 0, BASE_ARRAY_LEN(formats));
	tcase_add_loop_test(tests, sizes_are_read, 0, BASE_ARRAY_LEN(sizes));
	tcase_add_loop_test(tests, numbers_are_read, 0, BASE_ARRAY_LEN(numbers));
	tcase_add_loop_test(tests, names_stand_in_one_line, 0, BASE_ARRAY_LEN(quotes));
	tcase_add_test(tests, diagnoses_are_terminated_and_visible);
	tcase_add_loop_test(tests, bitmaps_keep_their_tail_clear, 0, BASE_ARRAY_LEN(lengths));
	tcase_add_test(tests, hashes_are_the_published_ones);
	tcase_add_test(tests, numbers_are_hashed_little_endian);
	tcase_add_test(tests, memory_is_shared_read_only);
	tcase_add_test(tests, owners_give_up_by_an_explicit_take);
	tcase_add_test(tests, random_bytes_differ);
	tcase_add_test(tests, variables_count_when_they_say_something);
	tcase_add_test(tests, texts_are_made_and_sorted);
}

int main(void)
{
	return suite_run("text", add);
}
