/* SPDX-License-Identifier: Apache-2.0 */

/* access-top's screens as text, at three sizes, and what keys do to them. */

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/top/top_view.h"
#include "tests/suite.h"

static struct top_model model;
static struct top_ui ui;

#define WAITED                                                                               \
	"\"waits\":{\"window_seconds\":10,\"scan\":0,\"read\":0,\"decode\":%f,\"slot\":%f}," \
	"\"waited\":{\"scan\":0,\"read\":0,\"decode\":%f,\"slot\":%f,\"workers\":0,"         \
	"\"schedule\":0,\"drain\":0}"
#define JOB                                                                                 \
	"{\"id\":%d,\"name\":\"%s\",\"pid\":%d,\"uid\":4123456,\"stream\":1,\"rank\":0,"    \
	"\"ranks\":1,\"batch\":16,\"epochs\":9,\"epoch\":2,\"active\":true,\"lives\":true," \
	"\"waiting\":false,\"untaken\":200,\"pins\":1,\"delivered\":%d,\"rate\":%d," WAITED "}"

static const char *opening = ""; /* a member with a comma behind it */

static void take(double t, const char *name)
{
	struct json_in *status = NULL;
	struct diag diag = {.text = ""};
	char text[16384];

	snprintf(
	    text, sizeof(text),
	    "{\"version\":\"9.8\",\"pid\":5,%s\"uptime_s\":%f,\"sees_all\":true,\"jobs\":[" JOB
	    "," JOB "," JOB
	    "],\"streams\":[{\"id\":1,\"jobs\":3,\"productions\":%d,\"slots\":8,\"pinned\":3,"
	    "\"memory\":1048576000,\"dataset\":\"/data/imagenet/train\",\"waiting_on\":\"none\"}],"
	    "\"node\":{\"workers_alive\":4,\"worker_cpu_seconds\":%f,\"samples_preprocessed\":%d,"
	    "\"memory_used\":2147483648,\"memory_budget\":4294967296},"
	    "\"cluster\":{\"failed\":\"\",\"trouble\":\"http://10.0.0.1:2379/v3/lease/grant: "
	    "it cannot be asked\",\"members\":[]}}",
	    opening, t, 12, "slow", 112, (int)(50 * t), 50, 7.0, 1.0, .7 * t, .1 * t, 3, "fast",
	    103, (int)(4000 * t), 4000, 0.0, 0.0, 0.0, 0.0, 8, name, 108, (int)(200 * t), 200, 1.0,
	    0.0, .1 * t, 0.0, (int)(2125 * t), 3 * t, (int)(2125 * t));
	ck_assert_msg(json_in_parse(text, strlen(text), 1 << 20, &status, &diag) == 0, "%s in %s",
		      diag.text, text);
	ck_assert_int_eq(top_model_take(&model, status), 0);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	top_model_init(&model);
	top_ui_init(&ui);
	take(100, "middle");
	take(101, "middle");
}

static void teardown(void)
{
	top_model_fini(&model);
}

/* The screen; the next one overwrites it. */
static const char *screen_of(unsigned width, unsigned height, bool is_utf8, const char *note)
{
	static char text[65536];
	struct top_grid grid;
	char *all;

	ck_assert_int_eq(top_grid_init(&grid, width, height, is_utf8), 0);
	top_layout(&ui, &model, note, &grid);
	all = top_grid_text(&grid);
	ck_assert_ptr_nonnull(all);
	snprintf(text, sizeof(text), "%s", all);
	free(all);
	top_grid_fini(&grid);
	return text;
}

static const char *screen(void)
{
	return screen_of(80, 24, false, "");
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part), "\"%s\" is not in:\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
	ck_assert_msg(!strstr(text, part), "\"%s\" is in:\n%s", part, text);
}

/* Are the parts there, one after the other? */
static void has_in_order(const char *text, const char *a, const char *b, const char *c)
{
	const char *at = strstr(text, a);

	at = at ? strstr(at, b) : NULL;
	ck_assert_msg(at && strstr(at, c), "%s, %s, %s are not in this order:\n%s", a, b, c, text);
}

static void keys(const char *text)
{
	for (; *text; text++)
		top_ui_key(&ui, &model, *text);
}

START_TEST(jobs_that_have_not_begun)
{
	opening = "\"opening\":[{\"stage\":\"scan\",\"samples\":1234567}],";
	take(102, "middle");
	has(screen_of(120, 24, false, ""),
	    " 3 jobs, 1 stream, 3 ranks, 1 opening (1234567 samples)\n");
	opening = "\"opening\":[{\"stage\":\"slot\"},{\"stage\":\"scan\"}],";
	take(103, "middle");
	has(screen_of(100, 24, false, ""), " 3 ranks, 2 opening\n");
	opening = "";
}
END_TEST

START_TEST(as_on_a_terminal)
{
	ck_assert_str_eq(
	    screen(),
	    "access-top  accessd 9.8 pid 5 up 101 s                 3 jobs, 1 stream, 3 ranks\n"
	    "Workers [||||||||||||||||||300% of 400]  Given     4250/s                    #\n"
	    "Memory  [|||||||||||||||     2.0G/4.0G]  Made      2125/s                    #\n"
	    "Readers [                    0% of 100]  Saved      50% by sharing, 3.0 CPUs\n"
	    "Loop    [                    0% of 100]  Kept         -\n"
	    "1Jobs 2Streams 3Ranks 4Workers 5Caches 6Tenants 7Peers 8Node           by:RATE/s\n"
	    " JOB  RATE/s HISTORY  WAIT% WAITS FOR AHEAD WITH SAVED% NAME\n"
	    "   3    4000        #     0 itself     0.1s    2     50 fast\n"
	    "   8     200        #    10 decoding   1.0s    2     50 middle\n"
	    "  12      50        #    80 decoding   4.0s    2     50 slow\n"
	    "\n\n\n\n\n\n\n\n\n\n\n\n\n"
	    "F1Help F3Search F4Filter F5Expand F6SortBy TabView F10Quit\n");
}
END_TEST

START_TEST(narrow_and_wide)
{
	const char *text = screen_of(40, 10, false, "");

	has(text, " JOB  RATE/s WAIT% WAITS FOR NAME\n");
	has(text, "   8     200    10 decoding  middle\n");
	has(text, "Jobs");
	has(text, "F1Help F3Search F4Filter");
	text = screen_of(200, 60, true, "");
	has(text, "USER");
	has(text, "READ%  DEC% SLOT% SELF% AHEAD HOLDS WITH SAVED% SAVED/s RANKS EPOCH    SAMPLES "
		  "NAME\n");
	has(text,
	    "4123456      112      50        █    80 decoding      0    70    10    20  4.0s");
	for (unsigned width = 1; width < 130; width += 7)
		for (unsigned height = 1; height < 40; height += 3)
			for (unsigned page = TOP_PAGE_ROWS; page <= TOP_PAGE_SORT; page++) {
				ui.page = page;
				ui.job = 3;
				ck_assert_ptr_nonnull(screen_of(width, height, true, ""));
			}
}
END_TEST

START_TEST(views)
{
	has(screen(), "3    4000");
	keys("\t");
	has(screen(),
	    "STREAM JOBS  RATE/s  MADE/s SAVED% SLOTS HELD    MEM DATASET\n"
	    "     1    3    4250    2125     50     8    3  1000M /data/imagenet/train\n");
	keys("8");
	has(screen(), "made               2125");
	has(screen(), "samples a second that are decoded");
	keys("4");
	has(screen(), "nothing to see");
	top_ui_key(&ui, &model, TOP_KEY_BACK_TAB);
	has(screen(), " JOB  RANK     PID STREAM  RATE/s");
	keys("1");
	has(screen(), " JOB  RATE/s");
}
END_TEST

START_TEST(trouble_of_the_cluster)
{
	keys("8");
	has_in_order(screen_of(60, 24, false, ""), "Does not work for now, and is tried again:\n",
		     "http://10.0.0.1:2379/v3/lease/grant: it cannot be asked\n", "WHAT");
	keys("7");
	has(screen(), "Does not work for now");
	has(screen(), "no other node is known");
	keys("1");
	has_not(screen(), "Does not work for now");
}
END_TEST

START_TEST(sorted)
{
	has_in_order(screen(), "fast", "middle", "slow");
	keys("I");
	has_in_order(screen(), "slow", "middle", "fast");
	has(screen(), "upwards:RATE/s");
	keys("W");
	has_in_order(screen(), "slow", "middle", "fast");
	keys("W");
	has_in_order(screen(), "fast", "middle", "slow");
	keys(">");
	has(screen(), "Sort by\n JOB ");
	top_ui_key(&ui, &model, TOP_KEY_END);
	keys("\n");
	has(screen(), "by:NAME");
	has_in_order(screen(), "fast", "middle", "slow");
	keys(">");
	top_ui_key(&ui, &model, TOP_KEY_HOME);
	keys("\r");
	has_in_order(screen(), "  12 ", "   8 ", "   3 ");
}
END_TEST

START_TEST(filtered)
{
	keys("\\SLO");
	has(screen(), "Filter: SLO_");
	has(screen(), "slow");
	has_not(screen(), "fast");
	keys("x");
	has(screen(), "none of the rows is asked for");
	top_ui_key(&ui, &model, TOP_KEY_BACKSPACE);
	keys("\n");
	has(screen(), "filter:SLO by:");
	has_not(screen(), "fast");
	keys("\\");
	for (int i = 0; i < 5; i++)
		top_ui_key(&ui, &model, TOP_KEY_BACKSPACE);
	has(screen(), "fast");
	keys("\x1b"); /* as before */
	has_not(screen(), "fast");
	keys("\x1b");
	has(screen(), "fast");
	keys("u4123456\n");
	has(screen(), "user:4123456");
	has(screen(), "fast");
	keys("u9\n2");
	has(screen(), "none of the rows is asked for");
}
END_TEST

START_TEST(the_cursor_goes_with_its_row)
{
	screen();
	ck_assert_uint_eq(ui.key[TOP_JOBS], 3);
	keys("j");
	ck_assert_uint_eq(ui.key[TOP_JOBS], 8);
	keys("I");
	screen();
	ck_assert_uint_eq(ui.key[TOP_JOBS], 8);
	keys("/fast\n");
	ck_assert_uint_eq(ui.key[TOP_JOBS], 3);
	keys("/zzz\n");
	ck_assert_uint_eq(ui.key[TOP_JOBS], 3);
	top_ui_key(&ui, &model, TOP_KEY_PAGE_UP);
	ck_assert_uint_eq(ui.key[TOP_JOBS], 12);
	for (int i = 0; i < 9; i++)
		top_ui_key(&ui, &model, TOP_KEY_DOWN);
	ck_assert_uint_eq(ui.key[TOP_JOBS], 3);
	has(screen_of(80, 10, false, ""), "fast"); /* it is scrolled to */
}
END_TEST

START_TEST(a_job_alone)
{
	const char *text;

	keys("/slow\n");
	take(102, "middle");
	keys("\n");
	text = screen();
	has(text, "Job 12  slow  of 4123456, pid 112\n");
	has(text, "Data set /data/imagenet/train\n");
	has(text, "50 samples/s; 4.0s ahead; holds 1 slots; epoch 2/9");
	has(text, "decoding 70 %, slots 10 %. What helps: more workers");
	has(text, "with 2 (fast, middle); 50 % need not be made for it alone, 25");
	has(text, "# itself 20%  d decoding 70%  s slots 10%  (of its last minute)\n");
	has(text, " s\n"); /* from above: slots, decoding, its own steps */
	has(text, " d\n");
	has(text, " #\n");
	keys("q");
	ck_assert(!ui.wants_quit);
	has(screen(), " JOB  RATE/s");
	ui.page = TOP_PAGE_JOB;
	ui.job = 99;
	has(screen(), "the job has ended");
}
END_TEST

START_TEST(help_and_quit)
{
	top_ui_key(&ui, &model, TOP_KEY_F1);
	has(screen(), "h ? F1          this help");
	has(screen(), "decoding   worker processes decode");
	for (int i = 0; i < 60; i++)
		top_ui_key(&ui, &model, TOP_KEY_PAGE_DOWN);
	screen();
	has(screen(), "what it means");
	keys("x");
	has(screen(), " JOB  RATE/s");
	keys("Z");
	has(screen(), "PAUSED");
	keys("q");
	ck_assert(ui.wants_quit);
}
END_TEST

START_TEST(nobody_is_there)
{
	const char *text;

	top_model_fini(&model);
	top_model_init(&model);
	text = screen_of(40, 12, false,
			 "no accessd at /run/accessd/socket: nobody listens. Waiting for it.");
	has(text, "\n  no accessd at /run/accessd/socket:\n  nobody listens. Waiting for it.\n");
	has(screen(), "no job is here");
	has(screen_of(9, 9, false, ""), "too small");
}
END_TEST

/* Of other users' processes. */
START_TEST(odd_names)
{
	take(102, "\\u001b[2Jx\\u0007 \\u00e9\\u65e5\\u672c\\u200b");
	has(screen_of(80, 24, false, ""), "?[2Jx? ????\n");
	has(screen_of(80, 24, true, ""), "?[2Jx? \xc3\xa9\xe6\x97\xa5\xe6\x9c\xac?\n");
	take(103, "a name that is much longer than the screen is wide, and goes on and on and on "
		  "for ever");
	has(screen_of(40, 10, true, ""), "decoding  a name ");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, as_on_a_terminal);
	tcase_add_test(tcase, jobs_that_have_not_begun);
	tcase_add_test(tcase, narrow_and_wide);
	tcase_add_test(tcase, views);
	tcase_add_test(tcase, trouble_of_the_cluster);
	tcase_add_test(tcase, sorted);
	tcase_add_test(tcase, filtered);
	tcase_add_test(tcase, the_cursor_goes_with_its_row);
	tcase_add_test(tcase, a_job_alone);
	tcase_add_test(tcase, help_and_quit);
	tcase_add_test(tcase, nobody_is_there);
	tcase_add_test(tcase, odd_names);
}

int main(void)
{
	return suite_run("top_layout", add);
}
