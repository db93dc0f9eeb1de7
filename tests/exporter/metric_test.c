/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics and page of a status: values, labels of hostile users, formats, what is not there. */

#include "exporter/metric.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

static const char some[] =
    "{\"version\":\"0.1\",\"uptime_s\":2.5,\"draining\":false,\"node\":{\"samples_read\":12,"
    "\"memory_source\":\"a\",\"loop\":{\"longest_turn_us\":1500}},"
    "\"jobs\":[{\"id\":4,\"uid\":1000,\"name\":\"a\\\"b\\\\c\\nd<x>&\",\"stream\":1,\"order\":"
    "\"any\",\"rate\":1.25,\"waiting\":true,\"waits\":{\"window_seconds\":4,\"read\":1}},"
    "{\"id\":5,\"uid\":1000,\"name\":\"late\",\"waits\":{\"window_seconds\":0,\"read\":0}}],"
    "\"caches\":[{\"uid\":7,\"gid\":8,\"public\":true,\"named\":\"\",\"mode\":\"on\"},"
    "{\"uid\":9,\"gid\":8,\"public\":false,\"named\":\"wild\",\"mode\":\"off\"}],"
    "\"cluster\":{\"members\":[{\"node\":\"b\",\"address\":\"10.0.0.2:7411\",\"state\":\"met\"},"
    "{\"node\":\"c\",\"address\":\"10.0.0.3:7411\",\"state\":\"waits\"}],"
    "\"channels\":[{\"node\":\"b\",\"uid\":7,\"gid\":8,\"public\":false,\"open\":false,\"gets\":9,"
    "\"answer_us\":250}]}}";

static char *text;
static size_t size;

static void teardown(void)
{
	free(text);
	text = NULL;
}

static struct json_in *parse(const char *json)
{
	struct json_in *status = NULL;
	struct diag diag = {""};

	ck_assert_msg(json_in_parse(json, strlen(json), 1 << 24, &status, &diag) == 0, "%s",
		      diag.text);
	return status;
}

static void page_of(const char *json, enum metric_format format)
{
	struct json_in *status = json ? parse(json) : NULL;
	FILE *out = open_memstream(&text, &size);

	metric_page(status, format, out);
	fclose(out);
	json_in_free(status);
}

static void has(const char *line)
{
	ck_assert_msg(strstr(text, line) != NULL, "no %s in\n%.4000s", line, text);
}

static void has_not(const char *word)
{
	ck_assert_msg(strstr(text, word) == NULL, "%s in\n%.4000s", word, text);
}

START_TEST(values)
{
	page_of(some, METRIC_OPEN);
	has("\noneaccess_up 1\n");
	has("\noneaccess_uptime_seconds 2.5\n");
	has("\noneaccess_draining 0\n");
	has("\noneaccess_samples_read_total 12\n");
	has("\noneaccess_loop_longest_turn_seconds 0.0015\n");
	has("\noneaccess_job_rate{jobid=\"4\",uid=\"1000\"} 1.25\n");
	has("\noneaccess_job_waiting{jobid=\"4\",uid=\"1000\"} 1\n");
	has("\noneaccess_job_wait_read_ratio{jobid=\"4\",uid=\"1000\"} 0.25\n");
	has("\noneaccess_cache_on{uid=\"7\",gid=\"8\",public=\"true\",named=\"\"} 1\n");
	has("\noneaccess_cache_on{uid=\"9\",gid=\"8\",public=\"false\",named=\"wild\"} 0\n");
	has("\noneaccess_peer_met{node=\"b\",address=\"10.0.0.2:7411\"} 1\n");
	has("\noneaccess_peer_met{node=\"c\",address=\"10.0.0.3:7411\"} 0\n");
	has("\noneaccess_peer_open{node=\"b\",uid=\"7\",gid=\"8\",public=\"false\"} 0\n");
	has("\noneaccess_peer_asked_total{node=\"b\",uid=\"7\",gid=\"8\",public=\"false\"} 9\n");
	has("\noneaccess_peer_answer_seconds{node=\"b\",uid=\"7\",gid=\"8\",public=\"false\"} "
	    "0.00025\n");
	has("\noneaccess_exporter_left_out 0\n# EOF\n");
}
END_TEST

/* Also what a division by nothing would be. */
START_TEST(what_is_not_there)
{
	page_of(some, METRIC_OPEN);
	has_not("oneaccess_read_bytes_total");
	has_not("job_rate{jobid=\"5\"");
	has_not("job_wait_read_ratio{jobid=\"5\"");
	has_not(" nan\n");
	has_not(" inf\n");
}
END_TEST

START_TEST(nobody_answers)
{
	page_of(NULL, METRIC_OPEN);
	ck_assert_str_eq(text, "# HELP oneaccess_up 1: accessd answers\n"
			       "# TYPE oneaccess_up gauge\noneaccess_up 0\n"
			       "# HELP oneaccess_exporter_left_out objects that have no series, as "
			       "they are too many\n"
			       "# TYPE oneaccess_exporter_left_out gauge\n"
			       "oneaccess_exporter_left_out 0\n# EOF\n");
}
END_TEST

static const char *const strange[] = {"[]",
				      "1",
				      "null",
				      "{\"jobs\":7,\"node\":[]}",
				      "{\"jobs\":[1,null,[],{}]}",
				      "{\"node\":{\"samples_read\":\"many\",\"bytes_read\":-1}}"};

START_TEST(another_status)
{
	page_of(strange[_i], METRIC_OPEN);
	has("\noneaccess_up 1\n");
	has_not("samples_read_total \"");
}
END_TEST

START_TEST(labels_are_escaped)
{
	page_of(some, METRIC_OPEN);
	has("\noneaccess_job_info{jobid=\"4\",name=\"a\\\"b\\\\c\\nd<x>&\",stream=\"1\",order="
	    "\"any\"} 1\n");
}
END_TEST

/* By whole characters. */
START_TEST(labels_are_cut)
{
	char json[1024] = "{\"jobs\":[{\"id\":1,\"name\":\"", *end = json + strlen(json);

	for (int i = 0; i < 150; i++)
		end = stpcpy(end, "\xc3\xa9");
	strcpy(end, "\"}]}");
	page_of(json, METRIC_OPEN);
	has("\xc3\xa9...\",stream=\"\"");
	ck_assert_uint_lt(size, 200000);
	has_not("\xc3.");
}
END_TEST

START_TEST(formats)
{
	page_of(some, METRIC_OPEN);
	has("# TYPE oneaccess_samples_read counter\n");
	has("# TYPE oneaccess_job info\n");
	has("# UNIT oneaccess_uptime_seconds seconds\n");
	teardown();
	page_of(some, METRIC_PLAIN);
	has("# TYPE oneaccess_samples_read_total counter\n");
	has("# TYPE oneaccess_job_info gauge\n");
	has_not("# UNIT");
	has_not("# EOF");
	ck_assert_int_eq(metric_format_of(NULL), METRIC_PLAIN);
	ck_assert_int_eq(metric_format_of("*/*"), METRIC_PLAIN);
	ck_assert_int_eq(metric_format_of("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
			 METRIC_OPEN);
}
END_TEST

START_TEST(so_many)
{
	FILE *out;
	char *json = NULL;
	size_t length;

	out = open_memstream(&json, &length);
	fputs("{\"jobs\":[", out);
	for (int i = 0; i < METRIC_MOST + 10; i++)
		fprintf(out, "%s{\"id\":%d,\"rate\":1}", i ? "," : "", i);
	fputs("]}", out);
	fclose(out);
	page_of(json, METRIC_OPEN);
	has("job_rate{jobid=\"1999\"");
	has_not("job_rate{jobid=\"2000\"");
	has_not("exporter_left_out 0\n");
	free(json);
}
END_TEST

START_TEST(the_page)
{
	struct json_in *status = parse(some);
	FILE *out = open_memstream(&text, &size);

	page_write(status, "", out);
	fclose(out);
	json_in_free(status);
	has("a&quot;b\\c\nd&lt;x&gt;&amp;");
	has_not("<x>");
	has_not("<script");
	has_not("http://");
	has_not("https://");
	has("</html>");
}
END_TEST

START_TEST(the_page_of_nobody)
{
	FILE *out = open_memstream(&text, &size);

	page_write(NULL, "<b>gone</b>", out);
	fclose(out);
	has("does not answer: &lt;b&gt;gone&lt;/b&gt;");
	has("</html>");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, values);
	tcase_add_test(tcase, what_is_not_there);
	tcase_add_test(tcase, nobody_answers);
	tcase_add_loop_test(tcase, another_status, 0, (int)BASE_ARRAY_LEN(strange));
	tcase_add_test(tcase, labels_are_escaped);
	tcase_add_test(tcase, labels_are_cut);
	tcase_add_test(tcase, formats);
	tcase_add_test(tcase, so_many);
	tcase_add_test(tcase, the_page);
	tcase_add_test(tcase, the_page_of_nobody);
}

int main(void)
{
	return suite_run("metric", add);
}
