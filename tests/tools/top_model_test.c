/* SPDX-License-Identifier: Apache-2.0 */

/* access-top's model: rates of differences, jobs of ranks, what was saved, where the time goes, and an accessd that begins anew. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tools/ctl_waits.h"
#include "tools/top/top_view.h"
#include "tests/suite.h"

static struct top_model model;

static void setup(void)
{
	top_model_init(&model);
}

static void teardown(void)
{
	top_model_fini(&model);
}

static void take(const char *fmt, ...) BASE_PRINTF(1, 2);
static void take(const char *fmt, ...)
{
	struct json_in *status = NULL;
	struct diag diag = {.text = ""};
	char text[16384];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ck_assert_msg(json_in_parse(text, strlen(text), 1 << 20, &status, &diag) == 0, "%s in %s",
		      diag.text, text);
	ck_assert_int_eq(top_model_take(&model, status), 0);
}

static const struct top_row *row_of(enum top_view view, uint64_t key)
{
	const struct top_row *row = top_find(&model, view, key);

	ck_assert_msg(row, "view %d has no row %llu", (int)view, (unsigned long long)key);
	return row;
}

static double number(enum top_view view, uint64_t key, unsigned column)
{
	return top_value(row_of(view, key), column)->number;
}

#define JOB                                                                                       \
	"{\"id\":%d,\"name\":\"%s\",\"pid\":%d,\"uid\":7,\"stream\":1,\"rank\":%d,\"ranks\":%d,"  \
	"\"batch\":16,\"epochs\":3,\"epoch\":1,\"active\":true,\"lives\":true,\"waiting\":false," \
	"\"untaken\":300,\"pins\":1,\"delivered\":%d,\"rate\":%d,\"waited\":{\"scan\":0,"         \
	"\"read\":%f,\"decode\":%f,\"slot\":0,\"workers\":0,\"schedule\":0,\"drain\":0},"         \
	"\"waits\":{\"window_seconds\":10,\"scan\":0,\"read\":1,\"decode\":3,\"slot\":0}}"
#define STREAM                                                                                   \
	"{\"id\":1,\"jobs\":%d,\"productions\":%d,\"dataset\":\"/d\",\"waiting_on\":\"decode\"," \
	"\"cache\":{\"point\":\"packed\",\"hits\":%d,\"misses\":%d}}"

/* Two jobs on one stream, t seconds after the start: 100 samples a second each, of which 110 are made. */
static void two(double t)
{
	int n = (int)(100 * t);

	take("{\"pid\":5,\"uptime_s\":%f,\"sees_all\":true,\"jobs\":[" JOB "," JOB
	     "],\"streams\":[" STREAM "],\"node\":{\"samples_preprocessed\":%d,"
	     "\"worker_cpu_seconds\":%f}}",
	     t, 2, "b", 22, 0, 1, n, 100, t / 4, t / 2, 1, "a", 21, 0, 1, n, 100, 0.0, t / 2, 2,
	     (int)(110 * t), (int)(30 * t), (int)(10 * t), (int)(110 * t), 1.1 * t);
}

START_TEST(rates_are_differences)
{
	two(10);
	ck_assert_double_nan(number(TOP_STREAMS, 1, TOP_STREAMS_MADE));
	ck_assert_double_nan(number(TOP_JOBS, 1, TOP_JOBS_ITSELF));
	ck_assert_double_eq(number(TOP_JOBS, 1, TOP_JOBS_RATE), 100); /* accessd says it */
	two(12);
	ck_assert_double_eq_tol(number(TOP_STREAMS, 1, TOP_STREAMS_MADE), 110, 1e-6);
	ck_assert_double_eq_tol(number(TOP_STREAMS, 1, TOP_STREAMS_RATE), 200, 1e-6);
	ck_assert_double_eq_tol(number(TOP_STREAMS, 1, TOP_STREAMS_HIT), .75, 1e-6);
	ck_assert_double_eq_tol(top_node_value(&model, TOP_OF_RATE), 200, 1e-6);
	ck_assert_double_eq_tol(top_node_value(&model, TOP_OF_WORKERS), 1.1, 1e-6);
	ck_assert_str_eq(top_value(row_of(TOP_STREAMS, 1), TOP_STREAMS_FORM)->text, "packed");
	ck_assert_str_eq(top_value(row_of(TOP_STREAMS, 1), TOP_STREAMS_WAITS)->text, "decoding");
}
END_TEST

/* Between steps nothing moves but what the status says itself. */
START_TEST(a_step_is_a_second)
{
	two(10);
	two(11);
	two(11.1);
	ck_assert_double_eq_tol(number(TOP_STREAMS, 1, TOP_STREAMS_MADE), 110, 1e-6);
	ck_assert_uint_eq(row_of(TOP_JOBS, 1)->past->steps, 2);
	two(11.95);
	ck_assert_uint_eq(row_of(TOP_JOBS, 1)->past->steps, 3);
}
END_TEST

START_TEST(what_was_saved)
{
	two(10);
	two(11);
	ck_assert_double_eq_tol(number(TOP_JOBS, 1, TOP_JOBS_SAVED), .45, 1e-5);
	ck_assert_double_eq_tol(number(TOP_JOBS, 1, TOP_JOBS_FREE), 45, 1e-3);
	ck_assert_double_eq(number(TOP_JOBS, 1, TOP_JOBS_WITH), 1);
	ck_assert_str_eq(row_of(TOP_JOBS, 1)->more, "b");
	ck_assert_double_eq_tol(top_node_value(&model, TOP_OF_SAVED), .45, 1e-5);
	/* 90 of 200 a second, each at 10 ms of a worker */
	ck_assert_double_eq_tol(top_node_value(&model, TOP_OF_SPARED), .9, 1e-4);
}
END_TEST

/* Another user's job has its part in what is made: what was saved is not known to who does not see it. */
START_TEST(hidden_jobs_leave_it_unknown)
{
	for (int i = 10; i < 12; i++)
		take("{\"pid\":5,\"uptime_s\":%d,\"sees_all\":false,\"jobs\":[" JOB
		     "],\"streams\":[" STREAM "],\"node\":{\"samples_preprocessed\":%d}}",
		     i, 1, "a", 21, 0, 1, 100 * i, 100, 0.0, 0.0, 2, 110 * i, 0, 0, 110 * i);
	ck_assert_double_nan(number(TOP_JOBS, 1, TOP_JOBS_SAVED));
	ck_assert_double_nan(top_node_value(&model, TOP_OF_SAVED));
	ck_assert_double_eq(number(TOP_JOBS, 1, TOP_JOBS_WITH), 1);
	ck_assert_str_eq(row_of(TOP_JOBS, 1)->more, "");
}
END_TEST

START_TEST(where_the_time_goes)
{
	two(10);
	two(11);
	ck_assert_double_eq_tol(top_past_part(row_of(TOP_JOBS, 2)->past, 0, TOP_PART_READ), .25,
				1e-6);
	ck_assert_double_eq_tol(number(TOP_JOBS, 2, TOP_JOBS_DECODE), .5, 1e-6);
	ck_assert_double_eq_tol(number(TOP_JOBS, 2, TOP_JOBS_ITSELF), .25, 1e-6);
	ck_assert_double_eq_tol(number(TOP_JOBS, 1, TOP_JOBS_ITSELF), .5, 1e-6);
	ck_assert_double_nan(top_past_part(row_of(TOP_JOBS, 2)->past, 1, TOP_PART_READ));
	ck_assert_double_nan(top_past_part(row_of(TOP_JOBS, 2)->past, 2, TOP_PART_READ));
	ck_assert_double_eq_tol(number(TOP_JOBS, 2, TOP_JOBS_WAIT), .4, 1e-6);
	ck_assert_str_eq(top_value(row_of(TOP_JOBS, 2), TOP_JOBS_FOR)->text, "decoding");
	ck_assert_double_eq_tol(number(TOP_JOBS, 2, TOP_JOBS_AHEAD), 3, 1e-6);
	/* The words of the parts are those that access-ctl explains. */
	ck_assert_str_eq(top_part_words[TOP_PART_SLOT], ctl_word_of("slot")->word);
	ck_assert_str_eq(top_part_words[TOP_PART_DRAIN], ctl_word_of("drain")->word);
}
END_TEST

START_TEST(ranks_are_one_job)
{
	for (int i = 10; i < 12; i++)
		take("{\"pid\":5,\"uptime_s\":%d,\"jobs\":[" JOB "," JOB "," JOB
		     "],\"streams\":[" STREAM "]}",
		     i, 3, "r", 23, 1, 2, 50 * i, 50, 0.0, .5 * i, 2, "r", 22, 0, 2, 50 * i, 50,
		     0.0, 0.0, 9, "s", 29, 0, 1, 100 * i, 100, 0.0, 0.0, 3, 100 * i, 0, 0);
	ck_assert_uint_eq(model.rows[TOP_RANKS].n, 3);
	ck_assert_uint_eq(model.rows[TOP_JOBS].n, 2);
	ck_assert_double_eq(number(TOP_JOBS, 2, TOP_JOBS_RANKS), 2);
	ck_assert_double_eq(number(TOP_JOBS, 2, TOP_JOBS_RATE), 100);
	ck_assert_double_eq(number(TOP_JOBS, 2, TOP_JOBS_HOLDS), 2);
	ck_assert_double_eq(number(TOP_JOBS, 2, TOP_JOBS_WITH), 1);
	ck_assert_double_eq_tol(number(TOP_JOBS, 2, TOP_JOBS_DECODE), .25, 1e-6);
	ck_assert_double_eq_tol(number(TOP_JOBS, 2, TOP_JOBS_SAVED), .5, 1e-5);
	ck_assert_str_eq(row_of(TOP_JOBS, 9)->more, "r");
}
END_TEST

START_TEST(an_accessd_that_begins_anew)
{
	two(100);
	two(101);
	ck_assert_uint_eq(model.steps, 2);
	two(1); /* the clock of the next one */
	ck_assert_uint_eq(model.steps, 1);
	ck_assert_double_nan(number(TOP_STREAMS, 1, TOP_STREAMS_MADE));
	two(2);
	ck_assert_double_eq_tol(number(TOP_STREAMS, 1, TOP_STREAMS_MADE), 110, 1e-6);
	take("{\"pid\":6,\"uptime_s\":3}");
	ck_assert_uint_eq(model.rows[TOP_JOBS].n, 0);
	ck_assert_double_nan(top_node_value(&model, TOP_OF_MADE));
}
END_TEST

START_TEST(the_past_is_a_ring)
{
	for (int i = 0; i < TOP_PAST + 50; i++)
		take("{\"pid\":5,\"uptime_s\":%d,\"jobs\":[" JOB "]}", i, 1, "a", 21, 0, 1, 0, i,
		     0.0, 0.0);
	ck_assert_double_eq(top_past_main(row_of(TOP_JOBS, 1)->past, 0), TOP_PAST + 49);
	ck_assert_double_eq(top_past_main(row_of(TOP_JOBS, 1)->past, TOP_PAST - 1), 50);
	ck_assert_double_nan(top_past_main(row_of(TOP_JOBS, 1)->past, TOP_PAST));
	take("{\"pid\":5,\"uptime_s\":%d,\"jobs\":[]}", TOP_PAST + 50);
	ck_assert_ptr_null(top_find(&model, TOP_JOBS, 1));
	for (const struct top_past *past = model.pasts; past; past = past->next)
		ck_assert_int_eq(past->view, TOP_NODE); /* who is gone is forgotten */
}
END_TEST

#define CHANNEL(node, gets, is_open)                                               \
	"{\"node\":\"" node "\",\"uid\":7,\"transport\":\"tcp\",\"open\":" is_open \
	",\"gets\":" gets ",\"gots\":" gets ",\"late\":1,\"answer_us\":250}"
#define MEMBER(node, state) "{\"node\":\"" node "\",\"state\":\"" state "\",\"why\":\"w\"}"

static const struct top_row *peer_row(const char *node)
{
	return row_of(TOP_PEERS, hash_checksum(node, strlen(node)));
}

/* A node is a line, whoever of its users are connected. */
START_TEST(a_peer_is_all_its_channels)
{
	for (int at = 10; at < 12; at++)
		take(
		    "{\"pid\":5,\"uptime_s\":%d,\"cluster\":{\"members\":[" MEMBER("b", "met") "," MEMBER("c", "waits") "," MEMBER(
			"d",
			"met") "],\"channels\":[" CHANNEL("b", "%d",
							  "true") "," CHANNEL("b", "%d",
									      "true") "," CHANNEL("d",
												  "5",
												  "false") "]}}",
		    at, at * 100, at * 100, at * 10, at * 10);
	ck_assert_str_eq(top_value(peer_row("b"), TOP_PEERS_STATE)->text, "connected");
	ck_assert_str_eq(top_value(peer_row("c"), TOP_PEERS_STATE)->text, "waits");
	ck_assert_str_eq(top_value(peer_row("d"), TOP_PEERS_STATE)->text, "shut");
	ck_assert_str_eq(top_value(peer_row("b"), TOP_PEERS_VIA)->text, "tcp");
	ck_assert_double_eq(top_value(peer_row("b"), TOP_PEERS_GOT)->number, 110);
	ck_assert_double_eq(top_value(peer_row("b"), TOP_PEERS_LATE)->number, 2);
	ck_assert_double_eq(top_value(peer_row("b"), TOP_PEERS_ANSWER)->number, 250);
	ck_assert_double_eq(top_value(peer_row("d"), TOP_PEERS_GOT)->number, 0);
}
END_TEST

/* An older or newer accessd, or one that says nonsense. */
START_TEST(anything_may_be_missing)
{
	static const char *const odd[] = {
	    "{}",
	    "[]",
	    "{\"jobs\":{}}",
	    "{\"jobs\":[{}]}",
	    "{\"jobs\":[1,null,{\"id\":-4,\"rate\":\"x\",\"name\":7,\"waited\":[]}]}",
	    "{\"jobs\":[{\"id\":1,\"ranks\":2},{\"id\":1,\"ranks\":2}],\"streams\":[{\"id\":0}]}",
	    "{\"workers\":[{}],\"caches\":[{}],\"tenants\":[{},{}],\"node\":[]}",
	    "{\"cluster\":{\"members\":[{},7,{\"node\":\"\"},{\"node\":1}],\"channels\":[{},8]}}",
	    "{\"cluster\":{\"members\":{},\"channels\":[]}}",
	    "{\"uptime_s\":-1e300,\"pid\":1}",
	};
	struct top_ui ui;

	for (size_t i = 0; i < 3 * BASE_ARRAY_LEN(odd); i++) {
		struct top_grid grid;

		take("%s", odd[i % BASE_ARRAY_LEN(odd)]);
		top_ui_init(&ui);
		ck_assert_int_eq(top_grid_init(&grid, 80, 24, false), 0);
		for (unsigned view = 0; view < TOP_VIEWS; view++) {
			ui.view = view;
			top_layout(&ui, &model, "", &grid);
		}
		top_grid_fini(&grid);
	}
}
END_TEST

static char *json_of(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	top_json(&model, out);
	fclose(out);
	return text;
}

START_TEST(a_line_of_json)
{
	struct json_in *root = NULL;
	const struct json_in *job;
	struct diag diag = {.text = ""};
	char *text;

	two(10);
	two(11);
	text = json_of();
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	ck_assert_msg(json_in_parse(text, strlen(text), 1 << 20, &root, &diag) == 0, "%s",
		      diag.text);
	job = json_in_item(json_in_member(root, "jobs"), 0);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "job"), 0), 1);
	ck_assert_str_eq(json_in_string(json_in_member(job, "name"), ""), "a");
	ck_assert_double_eq_tol(json_in_double(json_in_member(job, "saved"), 0), .45, 1e-5);
	ck_assert_int_eq(
	    json_in_kind_of(json_in_member(json_in_item(json_in_member(root, "ranks"), 0), "idle")),
	    JSON_IN_NULL);
	ck_assert_double_eq_tol(
	    json_in_double(json_in_member(json_in_member(root, "node"), "made"), 0), 110, 1e-6);
	json_in_free(root);
	free(text);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, rates_are_differences);
	tcase_add_test(tests, a_step_is_a_second);
	tcase_add_test(tests, what_was_saved);
	tcase_add_test(tests, hidden_jobs_leave_it_unknown);
	tcase_add_test(tests, where_the_time_goes);
	tcase_add_test(tests, ranks_are_one_job);
	tcase_add_test(tests, an_accessd_that_begins_anew);
	tcase_add_test(tests, the_past_is_a_ring);
	tcase_add_test(tests, a_peer_is_all_its_channels);
	tcase_add_test(tests, anything_may_be_missing);
	tcase_add_test(tests, a_line_of_json);
}

int main(void)
{
	return suite_run("top_model", add);
}
