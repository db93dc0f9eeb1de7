/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-ctl status, jobs, streams, workers and tenants, drawn from a status: the sentence, the words, the order, 80
 * columns, and whatever an accessd of another version, or a user with odd names, may put there.
 */

#include <stdlib.h>
#include <string.h>

#include "tools/ctl.h"
#include "tools/ctl_waits.h"
#include "tests/suite.h"

typedef void draw_fn(const struct json_in *status, FILE *out);

/* What is printed; the caller frees. */
static char *drawn(const char *text, draw_fn *draw)
{
	struct json_in *status = NULL;
	struct diag diag = {.text = ""};
	char *out = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	ck_assert_ptr_nonnull(file);
	ck_assert_msg(json_in_parse(text, strlen(text), 1 << 20, &status, &diag) == 0, "%s",
		      diag.text);
	draw(status, file);
	json_in_free(status);
	fclose(file);
	ck_assert_ptr_null(strchr(out, '\x1b'));
	return out;
}

static void check_is(const char *text, draw_fn *draw, const char *expected)
{
	char *out = drawn(text, draw);

	ck_assert_str_eq(out, expected);
	free(out);
}

static void check_has(const char *text, draw_fn *draw, const char *const *parts)
{
	char *out = drawn(text, draw);

	for (; *parts; parts++)
		ck_assert_msg(strstr(out, *parts), "\"%s\" is not in:\n%s", *parts, out);
	free(out);
}

#define HAS(text, draw, ...) check_has(text, draw, (const char *const[]){__VA_ARGS__, NULL})

#define HEAD "\"version\":\"9.8\",\"pid\":77,\"uid\":4123456,\"uptime_s\":52.5,\"serves_all\":false"
#define WAITS(window, read, decode, slot)                                                          \
	"\"waits\":{\"window_seconds\":" window ",\"scan\":0,\"read\":" read ",\"decode\":" decode \
	",\"slot\":" slot ",\"workers\":0,\"schedule\":0,\"drain\":0}"
#define JOB(id, name, rate, rest)                                                            \
	"{\"id\":" id ",\"name\":\"" name "\",\"pid\":1" id ",\"uid\":4123456,\"stream\":9," \
	"\"active\":true,\"lives\":true,\"batch\":16,\"epochs\":3,\"epoch\":1,"              \
	"\"population\":1500,\"delivered\":1700,\"untaken\":5,\"wait_seconds\":7.4,"         \
	"\"rate\":" rate "," rest "}"
#define QUIET "\"pins\":0,\"waiting\":false,\"waiting_seconds\":0,\"stage\":\"slot\","
#define STATUS(jobs) "{" HEAD ",\"jobs\":[" jobs "],\"streams\":[]}"

START_TEST(nobody)
{
	check_is(STATUS(""), ctl_draw_state,
		 "accessd 9.8, pid 77, private to 4123456, up 52 s: no job is here.\n");
	check_is(STATUS(""), ctl_draw_jobs, "no jobs\n");
	check_is("{}", ctl_draw_state, "accessd -, pid 0, up 0 s: no job is here.\n");
	check_is(
	    "{\"draining\":true,\"version\":\"1\",\"uptime_s\":200000}", ctl_draw_state,
	    "accessd 1, pid 0, up 2 d 7 h: it is ending, jobs go on with the next one; no job\n"
	    "is here.\n");
}
END_TEST

START_TEST(closed)
{
	HAS("{" HEAD ",\"parameters\":{\"closed\":\"till \\u001b noon\"}}", ctl_draw_state,
	    "no new jobs are served (till\n\\x1b noon); no job is here.");
	check_is("{\"parameters\":{\"closed\":\"\"}}", ctl_draw_state,
		 "accessd -, pid 0, up 0 s: no job is here.\n");
}
END_TEST

START_TEST(who_waits_for_what)
{
	static const char text[] =
	    STATUS(JOB("12", "fast", "3080.4", QUIET WAITS("10", "1", "5.2", "0")) "," JOB(
		"3", "slow", "4.25", QUIET WAITS("10", "0.2", "0.1", "0.1")));

	check_is(text, ctl_draw_state,
		 "accessd 9.8, pid 77, private to 4123456, up 52 s: 2 jobs get 3085 samples/s in\n"
		 "all; fast waits most, 62 % of the last 10 s, for decoding.\n");
	HAS(text, ctl_draw_waits,
	    "job  name    rate  waits  waits for\n"
	    "  3  slow   4.2/s    4 %  nothing: trains\n"
	    " 12  fast  3080/s   62 %  decoding\n"
	    "decoding   more workers (accessd.conf(5))");
	HAS(text, ctl_draw_jobs,
	    "job  pid  stream  batch  epoch    of  samples  holds  ahead  waited\n"
	    "  3   13       9     16    1/3  1500     1700      0      5     7 s\n"
	    " 12  112       9     16    1/3  1500     1700      0      5     7 s\n");
	check_is(STATUS(JOB("3", "slow", "4", QUIET WAITS("10", "0", "0.1", "0"))), ctl_draw_state,
		 "accessd 9.8, pid 77, private to 4123456, up 52 s: 1 job gets 4 samples/s; it\n"
		 "does not wait.\n");
}
END_TEST

/* What it waited for most counts, unless it waits for something else for a second. */
START_TEST(lately_and_now)
{
#define NOW(seconds, window)                                                                     \
	STATUS(JOB("3", "a", "0",                                                                \
		   "\"pins\":0,\"waiting\":true,\"stage\":\"read\",\"waiting_seconds\":" seconds \
		   "," window))
	HAS(NOW("0.5", WAITS("10", "0.5", "4", "0")), ctl_draw_waits, " 45 %  decoding\n");
	HAS(NOW("1.5", WAITS("10", "1.5", "4", "0")), ctl_draw_waits, " 55 %  reading\n");
	HAS(NOW("1.5", WAITS("100", "1.5", "0", "0")), ctl_draw_waits, " 2 %  reading\n");
	HAS(NOW("0.1", "\"of\":\"an older accessd\""), ctl_draw_waits, " -  reading\n");
	HAS(NOW("0", WAITS("0", "0", "0", "0")), ctl_draw_waits, " -  reading\n");
}
END_TEST

/* For which sample, where all behind it is there. */
START_TEST(a_late_sample_is_named)
{
#define LATE ",\"late\":{\"sample\":4711,\"name\":\"a.jpg\"},"
	HAS(NOW("12", "\"of\":0" LATE WAITS("10", "9", "0", "0")), ctl_draw_waits,
	    "reading: sample 4711 for 12 s (a.jpg)\n");
	HAS(NOW("12", WAITS("10", "9", "0", "0")), ctl_draw_waits, " reading\n");
}
END_TEST

START_TEST(holders_and_what_is_kept)
{
#define HELD "\"waiting\":false,\"stage\":\"slot\"," WAITS("10", "0", "0", "8")
	static const char held[] = STATUS(JOB("3", "first", "1", "\"pins\":2," HELD) "," JOB(
	    "4", "other", "1", "\"pins\":1," HELD));
#define KEPT(share)                                                                             \
	"{\"jobs\":[" JOB(                                                                      \
	    "3", "a", "1",                                                                      \
	    QUIET WAITS(                                                                        \
		"10", "8", "0",                                                                 \
		"0")) "],\"streams\":[{"                                                        \
		      "\"id\":9,\"cache\":{\"on\":true,\"point\":\"packed\",\"points\":["       \
		      "{\"name\":\"file\",\"cached\":0},{\"name\":\"packed\",\"cached\":" share \
		      "}]}}]}"

	HAS(held, ctl_draw_waits, "slots: held by itself 2, other 1\n",
	    "slots: held by first 2, itself 1\n", "\nslots      jobs that hold them");
	HAS(STATUS(JOB("3", "a", "1", "\"pins\":0," HELD)), ctl_draw_waits,
	    "slots: held by no job\n");
	HAS(KEPT("0.25"), ctl_draw_waits, "reading: 25 % are kept\n", "faster storage,",
	    ", or a cache_size that holds the data set\n");
	HAS(KEPT("1"), ctl_draw_waits, "reading: 100 % are kept\n",
	    "\nreading    all is kept, a larger cache_size changes nothing: a faster disk for\n");
}
END_TEST

START_TEST(stopped_ended_beginning)
{
	static const char text[] =
	    "{" HEAD ",\"jobs\":[{\"id\":1,\"name\":\"dead\",\"active\":true,\"lives\":false,"
	    "\"idle_seconds\":13.2,\"rate\":0,\"waiting\":false},"
	    "{\"id\":2,\"name\":\"gone\",\"active\":false,\"rate\":0,\"waiting\":true},"
	    "{\"id\":3}],\"opening\":[{\"name\":\"new\",\"pid\":9,\"stage\":\"scan\","
	    "\"samples\":1234567},{\"name\":\"newer\",\"pid\":10,\"stage\":\"slot\"}]}";

	HAS(text, ctl_draw_state, "3 jobs get 0 samples/s in", "dead takes nothing, for 13 s",
	    "2 more jobs");
	HAS(text, ctl_draw_waits, "  1  dead    0/s      -  stopped? for 13 s\n",
	    "  2  gone    0/s      -  its end\n", "  3  -         -      -  not known\n",
	    "  -  new       -      -  listing: 1234567 samples so far\n",
	    "  -  newer     -      -  slots\n");
	HAS("{\"opening\":[{\"name\":\"new\",\"stage\":\"scan\"}]}", ctl_draw_state,
	    "1 job is waiting to begin.");
}
END_TEST

START_TEST(explained)
{
	struct json_in *status = NULL;
	struct diag diag;
	char shares[200];
	static const char text[] =
	    STATUS(JOB("3", "a", "1", QUIET WAITS("10", "1", "5.2", "0.01")));

	ck_assert_int_eq(json_in_parse(text, strlen(text), 65536, &status, &diag), 0);
	ctl_waits_shares(json_in_item(json_in_member(status, "jobs"), 0), shares, sizeof(shares));
	ck_assert_str_eq(shares, "decoding 52 %, reading 10 %");
	ctl_waits_shares(status, shares, sizeof(shares));
	ck_assert_str_eq(shares, "");
	json_in_free(status);
}
END_TEST

#define STREAM(id, dataset, rest)                                                             \
	"{\"id\":" id ",\"dataset\":\"" dataset "\",\"jobs\":1,\"samples\":1500,\"slots\":8," \
	"\"slots_max\":39,\"pinned\":2,\"memory\":1048576,\"chunk\":256,\"slot_bytes\":1024," \
	"\"resident\":8,\"producing\":1,\"productions\":24290,\"reference\":23581,"           \
	"\"bad_samples\":0,\"waiting_on\":\"decode\"," rest                                   \
	"\"pipeline\":\"{\\\"ops\\\":[{\\\"op\\\":\\\"decode\\\"},{\\\"op\\\":\\\"hflip\\\"}]}\"}"

START_TEST(streams)
{
	static const char text[] = "{\"streams\":[" STREAM(
	    "12", "/data/of/a/very/long/name/imagenet/train",
	    "\"cache\":{\"on\":true,\"point\":\"packed\"},") "," STREAM("2", "/d",
									"\"cache\":{\"on\":"
									"false},") "]}";

	check_is(text, ctl_draw_stream_list,
		 "stream  jobs  samples  slots  held  memory  kept    dataset\n"
		 "     2     1     1500   8/39     2   1 MiB  -       /d\n"
		 "    12     1     1500   8/39     2   1 MiB  packed  "
		 "...name/imagenet/train\n");
	HAS(text, ctl_draw_streams,
	    "     2    256  1 KiB       8        1    24290   23581    0  decoding\n",
	    "stream 12: /data/of/a/very/long/name/imagenet/train; decode hflip\n");
	check_is("{}", ctl_draw_streams, "no streams\n");
}
END_TEST

START_TEST(variants)
{
	HAS("{\"streams\":[" STREAM(
		"2", "/d",
		"\"variants\":[{\"number\":0,\"jobs\":1,\"memory\":1024,\"shares\":\"\","
		"\"differs\":\"\",\"pipeline\":\"x\"},{\"number\":1,\"jobs\":2,\"memory\":2048,"
		"\"shares\":\"decode\",\"differs\":\"size\",\"pipeline\":\"y\"}],") "]}",
	    ctl_draw_streams, "stream 2: /d; decodes once for several pipelines\n",
	    "  variant 0: jobs 1, memory 1 KiB; x\n",
	    "  variant 1: jobs 2, memory 2 KiB; y; shares with the first: decode;");
}
END_TEST

START_TEST(workers)
{
	check_is("{\"workers\":[{\"index\":1,\"pid\":8,\"uid\":4123456,\"busy\":true,\"stream\":3,"
		 "\"done\":70,\"busy_seconds\":1.5},{\"index\":0,\"pid\":7,\"uid\":4123456,"
		 "\"busy\":false,\"stream\":0,\"done\":60,\"busy_seconds\":0.25},{\"index\":0,"
		 "\"pid\":9,\"uid\":4123457,\"public\":true,\"busy\":true,\"stream\":0,\"done\":5,"
		 "\"busy_seconds\":0}]}",
		 ctl_draw_workers,
		 "worker  pid  user       state    stream  done    busy\n"
		 "     0    7  4123456    idle          -    60  0.25 s\n"
		 "     1    8  4123456    decodes       3    70  1.50 s\n"
		 "     0    9  everybody  decodes       -     5  0.00 s\n");
	check_is("{}", ctl_draw_workers, "no workers\n");
}
END_TEST

START_TEST(tenants)
{
	static const char private[] =
	    "{" HEAD ",\"tenants\":[],\"jobs\":[{},{}],\"streams\":[{}],\"node\":{\"clients\":4,"
	    "\"memory_used\":1048576,\"memory_budget\":2097152,\"workers_alive\":2,"
	    "\"worker_cpu_seconds\":1.5,\"reader_cpu_seconds\":0.2}}";
	static const char several[] =
	    "{\"serves_all\":true,\"tenants\":[{\"uid\":4123457,\"public\":true,"
	    "\"workers_alive\":3,\"worker_cpu_seconds\":2,\"reader_cpu_seconds\":1},"
	    "{\"uid\":4123456,\"public\":false,\"jobs\":1,\"clients\":2,\"streams\":1,"
	    "\"streams_most\":8,\"memory\":1024,\"memory_most\":4096}]}";

	check_is(private, ctl_draw_tenants,
		 "This accessd serves one user alone, who may have all of it.\n"
		 "user     jobs  clients  streams          memory  workers    CPU\n"
		 "4123456     2        4        1  1 MiB of 2 MiB        2  1.7 s\n");
	check_is(several, ctl_draw_tenants,
		 "user       jobs  clients  streams          memory  workers    CPU\n"
		 "4123456       1        2   1 of 8  1 KiB of 4 KiB        -  0.0 s\n"
		 "everybody     -        -        -               -        3  3.0 s\n");
	check_is("{\"serves_all\":true,\"tenants\":[{\"uid\":4123456,\"jobs\":1,\"share\":3,"
		 "\"cpu_seconds_used\":1.5,\"cpu_seconds_saved\":4.5,\"bytes_used\":1024,"
		 "\"bytes_saved\":2048}]}",
		 ctl_draw_tenants,
		 "user     jobs  clients  streams      memory  workers    CPU\n"
		 "4123456     1        -   0 of 0  0 B of 0 B        -  0.0 s\n"
		 "\n"
		 "user     share  CPU used  CPU saved   read  reading saved\n"
		 "4123456      3     1.5 s      4.5 s  1 KiB          2 KiB\n");
	check_is("{\"serves_all\":true,\"tenants\":[]}", ctl_draw_tenants,
		 "you are not served now: no job of yours is here\n");
	check_is("{\"serves_all\":true,\"sees_all\":true}", ctl_draw_tenants,
		 "nobody is served now\n");
}
END_TEST

START_TEST(node)
{
	HAS("{\"share_public_why\":\"no user accessd-public\",\"node\":{\"samples_read\":5,"
	    "\"bytes_read\":2048,\"samples_preprocessed\":30,\"reference\":20,\"workers\":2,"
	    "\"workers_alive\":2,\"bad_samples\":1,\"refused\":2,\"loop\":"
	    "{\"longest_turn_cpu_us\":900}}}",
	    ctl_draw_node, "work     5 files read (2 KiB), 30 pictures decoded\n",
	    "         redundancy 1.500: 30 decoded", "(longest turn 0.9 ms)\n",
	    "workers  2 of 2 alive\n",
	    "trouble  1 bad sample (access-ctl bad JOB lists them), 2 jobs refused\n",
	    "sharing  off for what everybody may read: no user accessd-public\n");
	HAS("{\"node\":{\"memory_used\":1024,\"memory_budget\":2048,\"memory_source\":"
	    "\"a quarter of RAM\",\"machine\":{\"cpus\":1,\"cpus_mask\":4,\"cpus_from\":"
	    "\"/sys/a/cpu.max\",\"memory_limit\":4096,\"memory_from\":\"/sys/memory.max\","
	    "\"pressure\":{\"level\":\"slots\",\"some\":30.4,\"cache_eighths\":3}}}}",
	    ctl_draw_node, "memory   1 KiB of 2 KiB (a quarter of RAM) in use",
	    "limits   1 of 4 CPUs, by /sys/a/cpu.max\n",
	    "         4 KiB of memory, by /sys/memory.max\n",
	    "pressure memory is short on this node: somebody waited for it in 30 %",
	    "caches in memory", "3 eighths", "nothing is reserved ahead");
	HAS("{}", ctl_draw_node, "workers  0 of 0 alive; they start with a job\n",
	    "trouble  none\n");
}
END_TEST

static draw_fn *const draws[] = {ctl_draw_state,       ctl_draw_waits,   ctl_draw_jobs,
				 ctl_draw_stream_list, ctl_draw_streams, ctl_draw_workers,
				 ctl_draw_node,        ctl_draw_tenants};

/* A path is whole where it is the subject, whatever its length. */
static bool is_one_path(const char *line)
{
	line += strspn(line, " ");
	return *line == '/' && strcspn(line, " \n") > 70;
}

/* Names as long as they may be, figures as large as they usually get. */
START_TEST(eighty_columns)
{
#define LONG "a-name-of-a-job-that-is-far-longer-than-anybody-would-like"
#define HELD_LONG "\"pins\":64,\"waiting\":false,\"stage\":\"slot\"," WAITS("10", "0", "0", "10")
	static const char text[] =
	    "{\"serves_all\":true,\"version\":\"0.10.11\",\"pid\":4194304,\"uptime_s\":999999,"
	    "\"jobs\":[" JOB("12345", LONG "1", "123456", HELD_LONG) "," JOB(
		"12346", LONG "2", "123456",
		HELD_LONG) "],\"streams\":[" STREAM("1234", "/data/" LONG "/" LONG,
						    "\"cache\":{\"point\":\"augmented\"}"
						    ",") "],"
							 "\"node\":{\"samples_read\":"
							 "123456789012,\"bytes_read\":"
							 "123456789012345,"
							 "\"samples_preprocessed\":"
							 "123456789012,\"reference\":"
							 "123456789012,"
							 "\"memory_source\":\"seven eighths of the "
							 "cgroup's memory limit, less than "
							 "`memory`\",\"machine\":{\"cpus\":123,"
							 "\"cpus_"
							 "mask\":1234,\"cpus_from\":\"/" LONG
							 "/" LONG
							 "\",\"memory_limit\":123456789012,"
							 "\"memory_from\":\"/" LONG
							 "\",\"pressure\":{\"level\":\"slots\","
							 "\"some\":99.9}},"
							 "\"memory_used\":123456789012,"
							 "\"memory_budget\":"
							 "1234567890123,"
							 "\"worker_cpu_seconds\":"
							 "12345678.9,\"reader_cpu_"
							 "seconds\":12345678.9,"
							 "\"loop_cpu_seconds\":12345.6,"
							 "\"workers\":128,\"workers_"
							 "alive\":128,"
							 "\"bad_samples\":12345,\"waits_"
							 "on_dead\":1234,\"worker_"
							 "restarts\":12,"
							 "\"parent_restarts\":12,"
							 "\"reader_restarts\":12,"
							 "\"refused\":12,\"nonsense\":12}"
							 ","
							 "\"tenants\":[{\"uid\":4123456,"
							 "\"public\":false,\"jobs\":12,"
							 "\"clients\":24,"
							 "\"streams\":12,\"streams_"
							 "most\":16,\"memory\":"
							 "123456789012,"
							 "\"memory_most\":1234567890123,"
							 "\"worker_cpu_seconds\":"
							 "12345678.9}]}";

	for (size_t i = 0; i < BASE_ARRAY_LEN(draws); i++) {
		char *out = drawn(text, draws[i]);

		for (const char *line = out; *line; line += strcspn(line, "\n") + 1)
			ck_assert_msg(strcspn(line, "\n") <= 80 || is_one_path(line),
				      "longer than 80:\n%s", line);
		free(out);
	}
}
END_TEST

/* Of another kind than they should be, and with bytes that move the cursor. */
START_TEST(strange)
{
	static const char *const texts[] = {
	    "[]",
	    "{\"jobs\":7,\"streams\":{},\"workers\":\"x\",\"tenants\":null,\"opening\":3}",
	    "{\"jobs\":[7,null,{\"waits\":[]},{\"waits\":{\"window_seconds\":-1}},"
	    "{\"waits\":{\"window_seconds\":1,\"read\":1e300,\"decode\":-5}}],\"streams\":[1,{}],"
	    "\"workers\":[null],\"tenants\":[3],\"opening\":[5]}",
	    "{\"version\":\"\\u001b[1m\",\"jobs\":[{\"name\":\"\\u001b]0;x\\u0007\",\"waiting\":"
	    "true,"
	    "\"waiting_seconds\":9,\"stage\":\"\\u001b[2J\"}],\"opening\":[{\"name\":\"\\u001b\"}],"
	    "\"streams\":[{\"dataset\":\"\\u001b\",\"pipeline\":\"\\u001b\",\"variants\":["
	    "{\"shares\":\"\\u001b\"},{\"differs\":\"\\u001b\",\"pipeline\":\"\\u001b\"}],"
	    "\"cache\":{\"point\":\"\\u001b\"},\"waiting_on\":\"\\u001b\"}],"
	    "\"node\":{\"memory_source\":\"\\u001b\",\"machine\":{\"cpus_from\":\"\\u001b\","
	    "\"memory_from\":\"\\u001b\",\"pressure\":{\"level\":\"\\u001b\"}}},"
	    "\"share_public_why\":\"\\u001b\"}",
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < BASE_ARRAY_LEN(draws); k++)
			free(drawn(texts[i], draws[k]));
	HAS(texts[2], ctl_draw_waits, "100 %  reading");
	HAS(texts[3], ctl_draw_waits, "\\x1b[2J");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, nobody);
	tcase_add_test(tcase, closed);
	tcase_add_test(tcase, who_waits_for_what);
	tcase_add_test(tcase, lately_and_now);
	tcase_add_test(tcase, a_late_sample_is_named);
	tcase_add_test(tcase, holders_and_what_is_kept);
	tcase_add_test(tcase, stopped_ended_beginning);
	tcase_add_test(tcase, explained);
	tcase_add_test(tcase, streams);
	tcase_add_test(tcase, variants);
	tcase_add_test(tcase, workers);
	tcase_add_test(tcase, tenants);
	tcase_add_test(tcase, node);
	tcase_add_test(tcase, eighty_columns);
	tcase_add_test(tcase, strange);
}

int main(void)
{
	return suite_run("status", add);
}
