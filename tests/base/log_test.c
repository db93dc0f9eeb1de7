/* SPDX-License-Identifier: Apache-2.0 */

/* Check forks per test, so each test may put what it likes behind its own stderr. */

#include "base/base.h"
#include "base/log.h"
#include "base/log_keys.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A pipe behind stderr; returns the end to read. */
static int take_stderr(void)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
	close(ends[1]);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	return ends[0];
}

/* What is in the pipe now, at most size - 1 bytes. */
static char *read_all(int fd, char *ret, size_t size)
{
	size_t used = 0;
	ssize_t got;

	while ((got = read(fd, ret + used, size - 1 - used)) > 0)
		used += (size_t)got;
	ret[used] = '\0';
	return ret;
}

static unsigned count_of(const char *text, const char *needle)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, needle)); at += strlen(needle))
		count++;
	return count;
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t regex;

	ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	ck_assert_msg(regexec(&regex, text, 0, NULL, 0) == 0, "\"%s\" is not %s", text, pattern);
	regfree(&regex);
}

START_TEST(a_line_has_time_level_event_and_keys)
{
	int fd = take_stderr();
	char text[4096];

	unsetenv("JOURNAL_STREAM");
	log_init("accessd", LOG_LEVEL_INFO);
	errno = EBUSY;
	log_line(LOG_LEVEL_INFO, "stream-open", "dataset=%s slots=%u", "photos", 8u);
	ck_assert_int_eq(errno, EBUSY);
	assert_matches(read_all(fd, text, sizeof(text)),
		       "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z info "
		       "stream-open by=accessd dataset=photos slots=8\n$");
	log_line(LOG_LEVEL_DEBUG, "too-fine", "x=1");
	ck_assert_str_eq(read_all(fd, text, sizeof(text)), "");
	log_line(LOG_LEVEL_ERROR, "bare", "%s", "");
	assert_matches(read_all(fd, text, sizeof(text)), "Z error bare by=accessd\n$");
	log_line(LOG_LEVEL_WARN, "forged", "name=%s", "x\n2026 error fake");
	assert_matches(read_all(fd, text, sizeof(text)), "^[^\n]* name=x\\?2026 error fake\n$");
	ck_assert_uint_eq(log_lost(), 0);
}
END_TEST

static const char *format(const char *fmt, ...) BASE_PRINTF(1, 2);
static const char *format(const char *fmt, ...)
{
	static char text[160];
	va_list args;

	memset(text, 'x', sizeof(text));
	va_start(args, fmt);
	ck_assert_uint_eq(log_keys_format(text, 40, fmt, args), strlen(text));
	va_end(args);
	return text;
}

/* What stands between quotes stays between them, whoever made it. */
START_TEST(no_text_ends_its_quotes)
{
	int fd = take_stderr();
	char text[4096];

	log_init("accessd", LOG_LEVEL_INFO);
	log_line(LOG_LEVEL_INFO, "refused", "path=\"%.400s\" reason=\"%s\" n=%llu",
		 "/a\" forged=\"1\\", "x\ny", 7ULL);
	assert_matches(read_all(fd, text, sizeof(text)),
		       " path=\"/a\\\\x22 forged=\\\\x221\\\\x5c\" reason=\"x\\\\x0ay\" n=7\n$");
	ck_assert_str_eq(format("a=\"%s\" b=%s", "\\x22", "\"b"), "a=\"\\x22\" b=\"b");
	ck_assert_str_eq(format("a=\"%c%s\"", '"', "\\x2"), "a=\"\\x22\\x5cx2\"");
	ck_assert_str_eq(format("\"%s\" \"%s", "\"\"\"\"\"\"\"\"", "\"\""),
			 "\"\\x22\\x22\\x22\\x22\\x22\\x22\\x22\\x22\" \"");
}
END_TEST

START_TEST(numbers_are_as_printf_has_them)
{
	ck_assert_str_eq(format("%d %i %u", -3, 4, 5u), "-3 4 5");
	ck_assert_str_eq(format("%ld %lld %zu", -3L, -4LL, (size_t)5), "-3 -4 5");
	ck_assert_str_eq(format("%lu %llu", 3UL, UINT64_C(1) << 63 | 0ULL),
			 "3 9223372036854775808");
	ck_assert_str_eq(format("%x %#x %.3d %d%%", 255u, 255u, 7, 8), "ff 0xff 007 8%");
	ck_assert_str_eq(format("%.1f %f", 1.25, 2.0), "1.2 2.000000");
	ck_assert_str_eq(format("%.2s|%.*s|%s", "abc", 1, "xyz", ""), "ab|x|");
	ck_assert_str_eq(format("%s", "0123456789012345678901234567890123456789"),
			 "012345678901234567890123456789012345678");
	ck_assert_str_eq(format("a=%5d b=%d", 1, 2), "a=");
}
END_TEST

START_TEST(the_journal_gets_a_priority)
{
	int fd = take_stderr();
	struct stat status;
	char text[4096];

	ck_assert_int_eq(fstat(STDERR_FILENO, &status), 0);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)status.st_dev,
		 (unsigned long long)status.st_ino);
	setenv("JOURNAL_STREAM", text, 1);
	log_init("accessd", LOG_LEVEL_INFO);
	log_line(LOG_LEVEL_WARN, "event", "x=1");
	ck_assert_str_eq(read_all(fd, text, sizeof(text)), "<4>warn event by=accessd x=1\n");
	setenv("JOURNAL_STREAM", "1:2", 1); /* somebody else's */
	log_init("accessd", LOG_LEVEL_INFO);
	log_line(LOG_LEVEL_WARN, "event", "x=1");
	ck_assert_int_eq(read_all(fd, text, sizeof(text))[0], '2');
}
END_TEST

START_TEST(long_lines_are_cut_in_one_piece)
{
	int fd = take_stderr();
	static char name[9000];
	char text[8192];

	memset(name, 'n', sizeof(name) - 1);
	log_init("accessd", LOG_LEVEL_INFO);
	log_line(LOG_LEVEL_INFO, "long", "name=%s", name);
	read_all(fd, text, sizeof(text));
	ck_assert_uint_lt(strlen(text), 4096);
	ck_assert_uint_gt(strlen(text), 1024);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

static void sleep_past_the_second(void)
{
	const struct timespec pause = {.tv_sec = 1, .tv_nsec = 50000000};

	nanosleep(&pause, NULL);
}

START_TEST(repeated_events_are_limited_and_told)
{
	int fd = take_stderr();
	char text[65536];

	log_init("accessd", LOG_LEVEL_INFO);
	for (int i = 0; i < 100; i++)
		log_line(LOG_LEVEL_WARN, "flood", "i=%d", i);
	log_line(LOG_LEVEL_INFO, "other", "x=1");
	read_all(fd, text, sizeof(text));
	/* 20, or 40 if the second ended in between. */
	ck_assert_uint_ge(count_of(text, " flood "), 20);
	ck_assert_uint_le(count_of(text, " flood "), 40);
	ck_assert_uint_eq(count_of(text, " other "), 1);
	sleep_past_the_second();
	log_line(LOG_LEVEL_INFO, "other", "x=2"); /* any event tells */
	read_all(fd, text, sizeof(text));
	assert_matches(text, "^[^\n]* warn log-left-out by=accessd event=flood lines=[0-9]+\n"
			     "[^\n]* other by=accessd x=2\n$");
	log_line(LOG_LEVEL_WARN, "flood", "again=1");
	ck_assert_uint_eq(count_of(read_all(fd, text, sizeof(text)), "again=1"), 1);
}
END_TEST

/* Texts to people say where the lines are found. */
START_TEST(the_place_of_the_lines_is_known)
{
	ck_assert_str_eq(log_place(), "its stderr");
	log_set_file("/run/user/7/oneaccess/accessd.log");
	ck_assert_str_eq(log_place(), "/run/user/7/oneaccess/accessd.log");
}
END_TEST

/* Of the one event that has a hint, whatever else is left out. */
START_TEST(left_out_lines_have_a_hint)
{
	int fd = take_stderr();
	char text[65536];

	log_init("accessd", LOG_LEVEL_INFO);
	log_set_hint("flood", "ask for all of them");
	for (int i = 0; i < 100; i++)
		log_line(LOG_LEVEL_WARN, "flood", "i=%d", i);
	for (int i = 0; i < 100; i++)
		log_line(LOG_LEVEL_WARN, "stream", "i=%d", i);
	read_all(fd, text, sizeof(text));
	sleep_past_the_second();
	log_line(LOG_LEVEL_INFO, "other", "x=2");
	read_all(fd, text, sizeof(text));
	assert_matches(text, "^[^\n]* log-left-out by=accessd event=flood lines=[0-9]+ "
			     "hint=\"ask for all of them\"\n"
			     "[^\n]* log-left-out by=accessd event=stream lines=[0-9]+\n"
			     "[^\n]* other by=accessd x=2\n$");
}
END_TEST

START_TEST(many_names_do_not_break_the_table)
{
	int fd = take_stderr();
	char text[65536], event[64];

	log_init("accessd", LOG_LEVEL_INFO);
	for (int i = 0; i < 200; i++) {
		snprintf(event, sizeof(event), "event-%d-%*s", i, i % 40, "x");
		log_line(LOG_LEVEL_WARN, event, "i=%d", i);
	}
	ck_assert_uint_eq(count_of(read_all(fd, text, sizeof(text)), "\n"), 200);
}
END_TEST

/* Nobody reads: the program goes on, the lines are counted, and told once there is room again. */
static void assert_never_blocks(int fd)
{
	static char text[1 << 22];
	char event[32];
	uint64_t lost;
	unsigned told, lines = 0;
	int i;

	for (i = 0; log_lost() < 50; i++) {
		ck_assert_int_lt(i, 100000);
		snprintf(event, sizeof(event), "event-%d", i);
		log_line(LOG_LEVEL_INFO, event, "%*s", 400, "x");
	}
	lost = log_lost();
	read_all(fd, text, sizeof(text));
	lines = count_of(text, "\n");
	ck_assert_uint_eq(lines + lost, (unsigned)i);
	log_line(LOG_LEVEL_INFO, "again", "x=1");
	read_all(fd, text, sizeof(text));
	ck_assert_uint_eq(count_of(text, " again "), 1);
	ck_assert_int_eq(sscanf(strstr(text, "lines="), "lines=%u", &told), 1);
	ck_assert_uint_eq(told, lost);
	log_line(LOG_LEVEL_INFO, "again", "x=2");
	ck_assert_uint_eq(count_of(read_all(fd, text, sizeof(text)), "lines="), 0);
}

START_TEST(a_blocked_pipe_stops_nobody)
{
	int fd = take_stderr();

	log_init("accessd", LOG_LEVEL_INFO);
	/* Who shares our stderr keeps a blocking one. */
	ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	assert_never_blocks(fd);
}
END_TEST

START_TEST(a_blocked_socket_stops_nobody)
{
	int sock[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, sock), 0);
	ck_assert_int_ge(dup2(sock[0], STDERR_FILENO), 0);
	ck_assert_int_eq(fcntl(sock[1], F_SETFL, O_NONBLOCK), 0);
	log_init("accessd", LOG_LEVEL_INFO);
	assert_never_blocks(sock[1]);
}
END_TEST

START_TEST(a_closed_pipe_stops_nobody)
{
	int fd = take_stderr();

	log_init("accessd", LOG_LEVEL_INFO);
	close(fd);
	log_line(LOG_LEVEL_INFO, "nobody", "x=1");
	ck_assert_uint_eq(log_lost(), 1);
}
END_TEST

static void *log_many(void *unused)
{
	char event[32];

	for (int i = 0; i < 100; i++) {
		snprintf(event, sizeof(event), "thread-%p-%d", (void *)&event, i % 10);
		log_line(LOG_LEVEL_INFO, event, "i=%d", i);
	}
	return unused;
}

START_TEST(threads_write_whole_lines)
{
	int fd = take_stderr();
	pthread_t threads[4];
	char text[65536];

	log_init("accessd", LOG_LEVEL_INFO);
	for (size_t i = 0; i < BASE_ARRAY_LEN(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, NULL), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	read_all(fd, text, sizeof(text));
	ck_assert_uint_eq(count_of(text, "\n") + log_lost(), 400);
	ck_assert_uint_eq(count_of(text, " by=accessd i="), count_of(text, "\n"));
}
END_TEST

START_TEST(levels_are_read)
{
	enum log_level level = LOG_LEVEL_WARN;

	ck_assert_int_eq(log_parse_level("loud", &level), -EINVAL);
	ck_assert_int_eq(level, LOG_LEVEL_WARN);
	ck_assert_int_eq(log_parse_level("debug", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(log_parse_level("error", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_ERROR);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, a_line_has_time_level_event_and_keys);
	tcase_add_test(tests, no_text_ends_its_quotes);
	tcase_add_test(tests, numbers_are_as_printf_has_them);
	tcase_add_test(tests, the_journal_gets_a_priority);
	tcase_add_test(tests, long_lines_are_cut_in_one_piece);
	tcase_add_test(tests, repeated_events_are_limited_and_told);
	tcase_add_test(tests, the_place_of_the_lines_is_known);
	tcase_add_test(tests, left_out_lines_have_a_hint);
	tcase_add_test(tests, many_names_do_not_break_the_table);
	tcase_add_test(tests, a_blocked_pipe_stops_nobody);
	tcase_add_test(tests, a_blocked_socket_stops_nobody);
	tcase_add_test(tests, a_closed_pipe_stops_nobody);
	tcase_add_test(tests, threads_write_whole_lines);
	tcase_add_test(tests, levels_are_read);
}

int main(void)
{
	return suite_run("log", add);
}
