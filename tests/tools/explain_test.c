/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-ctl explain, drawn from a status: the form and the reason in words, the numbers, and whatever
 * an accessd of another version may leave out or add.
 */

#include <stdlib.h>
#include <string.h>

#include "tools/ctl.h"
#include "tests/suite.h"

#define FORM(name, work, whole, serve, total, fits, cached)                     \
	"{\"name\":\"" name "\",\"samples\":40,\"made\":40,\"work_us\":" work   \
	",\"read_us\":60,\"read_cpu_us\":30,"                                   \
	"\"make_us\":2300,\"write_us\":90,\"bytes\":116000,\"whole_us\":" whole \
	",\"serve_us\":" serve ",\"total_us\":" total ",\"fits\":" fits ",\"cached\":" cached "}"
#define FORMS                                                                   \
	FORM("file", "1000", "500", "500", "500", "1", "0")                     \
	"," FORM("packed", "480", "250", "250", "300.5", "1", "0.25") "," FORM( \
	    "decoded", "400", "200", "476", "505", "0.12",                      \
	    "0") "," FORM("augmented", "90", "45", "45", "700", "1",            \
			  "0") "," FORM("decoded+2", "0", "null", "null", "null", "0", "0")
#define STATUS(cache)                                                             \
	"{\"jobs\":[{\"id\":3,\"name\":\"resnet\",\"pid\":77,\"stream\":9},"      \
	"{\"id\":4,\"name\":\"other\",\"pid\":78,\"stream\":8}],"                 \
	"\"streams\":[{\"id\":9,\"dataset\":\"/data/\\u001bx\",\"cache\":{" cache \
	",\"points\":[" FORMS "]}},{\"id\":8,\"dataset\":\"/data/y\"}]}"
#define CHOICE(point, reason, rival) CHOICE_BECAUSE("", point, reason, rival)
#define CHOICE_BECAUSE(why, point, reason, rival)                                                  \
	"\"on\":true,\"why\":\"" why "\",\"point\":\"" point "\",\"forced\":false,\"makes\":true," \
	"\"reason\":\"" reason "\",\"rival\":\"" rival                                             \
	"\",\"uses\":7.5,\"hits\":30,\"misses\":90,\"bytes\":3480000,\"wrong\":2"

/* What is printed; the caller frees. */
static char *explained(const char *text, const char *who, int expected)
{
	struct json_in *status = NULL;
	struct diag diag = {.text = ""};
	char *out = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(json_in_parse(text, strlen(text), 65536, &status, &diag), 0);
	ck_assert_int_eq(ctl_explain(status, who, file, &diag), expected);
	json_in_free(status);
	fclose(file);
	if (expected) {
		ck_assert_str_eq(out, "");
		free(out);
		out = strdup(diag.text);
	}
	return out;
}

static void check_has(const char *text, const char *who, int expected, const char *const *parts)
{
	char *out = explained(text, who, expected);

	for (; *parts; parts++)
		ck_assert_msg(strstr(out, *parts), "\"%s\" is not in:\n%s", *parts, out);
	ck_assert_ptr_null(strchr(out, '\x1b'));
	free(out);
}

static void check_has_not(const char *text, const char *who, const char *const *parts)
{
	char *out = explained(text, who, 0);

	for (; *parts; parts++)
		ck_assert_msg(!strstr(out, *parts), "\"%s\" is in:\n%s", *parts, out);
	free(out);
}

#define HAS_NOT(text, who, ...) check_has_not(text, who, (const char *const[]){__VA_ARGS__, NULL})
#define HAS(text, who, expected, ...) \
	check_has(text, who, expected, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(best)
{
	static const char text[] = STATUS(CHOICE("packed", "best", "file"));

	HAS(text, "3", 0, "job 3, resnet, process 77; stream 9 of /data/\\x1bx\n",
	    "Kept is packed: packed coefficients. It has the least expected time: 0.60 of the time "
	    "from files.\n",
	    "What is not kept yet is made beside the outputs", "* packed", "25 %", "2300 us",
	    "Of 120 samples that were looked for 30 came kept (25.0 %, 3.3 MiB); 2 were of no use");
	HAS(text, "resnet", 0, "job 3,");
}
END_TEST

START_TEST(in_memory)
{
	static const char text[] = STATUS("\"memory_only\":true," CHOICE_BECAUSE(
	    "NFS is no local disk", "packed", "best", "file"));

	HAS(text, "3", 0, "Kept is packed",
	    "It is kept in memory only, and gone with accessd: NFS is no local disk\n");
}
END_TEST

START_TEST(not_kept)
{
	static const char worth[] = STATUS(CHOICE("file", "not_worth", "decoded"));
	static const char room[] = STATUS(CHOICE("file", "no_room", "decoded"));
	static const char uses[] = STATUS(CHOICE("file", "few_uses", "packed"));
	static const char again[] = STATUS(CHOICE("file", "few_uses", "augmented") ",\"reuse\":3");
	static const char none[] = STATUS(CHOICE("file", "unmeasured", "file"));

	HAS(worth, "3", 0,
	    "Nothing is kept. Keeping decoded, the quickest form, would take 0.40 of "
	    "the time from files even if all of it were kept; 3 % must be saved.");
	HAS(room, "3", 0,
	    "Nothing is kept. Keeping decoded would take 0.40 of the time from files if "
	    "all of it were kept, but only 12 % fit: 0.95 of the time from files.");
	HAS(uses, "3", 0,
	    "Nothing is kept. Keeping packed would take 0.50 of the time from files, but "
	    "with its making 0.60 of the time from files over the 7.5 uses");
	HAS(again, "3", 0,
	    "with its making 1.40 of the time from files over the 3.0 uses of each sample that are "
	    "allowed (reuse)");
	HAS(none, "3", 0, "Nothing is kept. Too little is measured yet to decide.\n");
}
END_TEST

/* What is not measured is not told as if it took no time. */
START_TEST(unmeasured)
{
	HAS("{\"jobs\":[{\"id\":3,\"stream\":9}],\"streams\":[{\"id\":9,\"cache\":{\"on\":true,"
	    "\"point\":\"file\",\"reason\":\"unmeasured\",\"points\":[" FORM("file", "70", "0", "0",
									     "0", "1", "0") "]}}]}",
	    "3", 0, "* file     -     -               -           -            -\n");
}
END_TEST

/* First of all, why it is slow. */
START_TEST(what_it_waits_for)
{
#define WAITS(read, decode)                                                                     \
	"{\"jobs\":[{\"id\":3,\"stream\":9,\"waiting\":false,\"waits\":{\"window_seconds\":10," \
	"\"read\":" read ",\"decode\":" decode "}}],\"streams\":[{\"id\":9}]}"
	HAS(WAITS("1", "5.2"), "3", 0,
	    "It waits 62 % of its time (decoding 52 %, reading 10 %; the last 10 s).\n"
	    "What helps against decoding: more workers");
	HAS(WAITS("0.1", "0"), "3", 0,
	    "It waits 1 % of its time (the last 10 s): its own steps are");
	HAS("{\"jobs\":[{\"id\":3,\"waiting\":true,\"stage\":\"slot\"}]}", "3", 0,
	    "How long it waits is not known; now it waits for slots: held by no job.\n");
	HAS("{\"jobs\":[{\"id\":3,\"lives\":false,\"idle_seconds\":13}]}", "3", 0,
	    "It takes nothing of what is ready for it, for 13 s: is it stopped?\n");
}
END_TEST

START_TEST(other_reasons)
{
	static const char stays[] = STATUS(CHOICE("packed", "stays", "decoded"));
	static const char blind[] = STATUS(CHOICE("decoded+2", "unmeasured", "file"));
	static const char newer[] = STATUS(CHOICE("melted", "by \\u001b[1m chance", "frozen"));
	static const char again[] = STATUS(CHOICE("augmented", "best", "packed"));
	static const char forced[] = STATUS("\"on\":true,\"point\":\"decoded\",\"forced\":true,"
					    "\"reason\":\"best\",\"makes\":false");

	HAS(stays, "3", 0,
	    "It is kept already; decoded does not save enough of its time: 3 %, or a quarter "
	    "before 256 samples");
	HAS(blind, "3", 0,
	    "Kept is decoded+2: the picture behind 2 more ops. Too little is measured "
	    "yet to decide; what is kept is used.");
	HAS(newer, "3", 0, "accessd's reason: by \\x1b[1m chance\n");
	HAS(again, "3", 0,
	    "Kept is augmented: the augmented picture, made anew after as many epochs as may see "
	    "it.");
	HAS(forced, "3", 0,
	    "Kept is decoded: the decoded picture. accessd was told to: cache_point",
	    "No more of it is made; what is there is used.", "Of 0 samples that were looked for 0");
}
END_TEST

START_TEST(no_cache)
{
	static const char off[] =
	    STATUS("\"on\":false,\"why\":\"cache_size is 0\",\"point\":\"none\"");
	static const char text[] = STATUS(CHOICE("packed", "best", "file"));

	HAS(off, "3", 0, "Nothing is kept: cache_size is 0\n");
	HAS(text, "4", 0, "job 4, other", "This accessd keeps nothing of samples.\n");
	HAS(text, "5\x1b", CTL_E_NONE, "there is no job 5\\x1b among 2");
	HAS("{}", "3", CTL_E_NONE, "there is no job 3 among 0");
}
END_TEST

/* Two workers, both busy with decoding: what limits, and each change. */
#define POINT(name, work, read, fits, cached)                                                      \
	"{\"name\":\"" name "\",\"samples\":40,\"made\":40,\"work_us\":" work ",\"read_us\":" read \
	",\"read_cpu_us\":20,\"bytes\":116000,\"fits\":" fits ",\"cached\":" cached "}"
#define BUSY(reason, fits, waits)                                                                  \
	"{\"node\":{\"readers\":4,\"workers\":2,\"machine\":{\"cpus\":4}},"                        \
	"\"workers\":[{\"uid\":5,\"public\":false},{\"uid\":5,\"public\":false},{\"uid\":6}],"     \
	"\"jobs\":[{\"id\":3,\"name\":\"resnet\",\"uid\":5,\"stream\":9,\"active\":true,\"rate\":" \
	"1000,"                                                                                    \
	"\"ranks\":1,\"waits\":{\"window_seconds\":10," waits "}}],"                               \
	"\"streams\":[{\"id\":9,\"dataset\":\"/data/"                                              \
	"x\",\"samples\":1000,\"slots\":4,\"median_us\":1990,"                                     \
	"\"cache\":{\"on\":true,\"point\":\"file\",\"reason\":\"" reason                           \
	"\",\"rival\":\"packed\",\"points\":[" POINT("file", "1980", "100", "1", "0") "," POINT(   \
	    "packed", "990", "50", fits, "0") "]}}]}"

START_TEST(what_limits)
{
	static const char decode[] = BUSY("few_uses", "1", "\"decode\":8");
	static const char room[] = BUSY("no_room", "0.12", "\"decode\":8");
	static const char job[] = BUSY("few_uses", "1", "\"decode\":0.2");
	static const char slots[] = BUSY("few_uses", "1", "\"slot\":3,\"read\":1");

	HAS(decode, "3", 0, "Limit: decoding, the workers' CPU time.\n",
	    "  * decode          100 %        80 %               1000\n",
	    "1980   +98 %  workers=4\n",
	    "2000  +100 %  cache warm --form packed, with its --pipeline (110.6 MiB)\n",
	    "source twice as fast       1000    +0 %  faster", "1000    +0 %  memory, or slots=8");
	HAS(room, "/data/x", 0, "job 3, resnet", "Limit: the cache: what would be quicker",
	    "cache_size over 110.6 MiB (12 % fit)");
	HAS(job, "3", 0, "Limit: the job itself", "1010  +1 %  the job");
	HAS(slots, "3", 0, "Limit: slots,");
}
END_TEST

/* Of a system's accessd a user's workers and their CPU time count, not those of others. */
START_TEST(busy_processors)
{
	static const char text[] =
	    "{\"node\":{\"worker_cpu_seconds\":90,\"machine\":{\"cpus\":2}},"
	    "\"tenants\":[{\"uid\":6,\"worker_cpu_seconds\":80},{\"uid\":5,\"worker_cpu_seconds\":"
	    "10}],"
	    "\"workers\":[{\"uid\":5,\"busy_seconds\":40},{\"uid\":6,\"busy_seconds\":80}],"
	    "\"jobs\":[{\"id\":3,\"uid\":5,\"stream\":9,\"active\":true,\"rate\":1000,"
	    "\"waits\":{\"window_seconds\":10,\"decode\":9}}],"
	    "\"streams\":[{\"id\":9,\"median_us\":200}]}";

	HAS(text, "3", 0, "Workers wait for a processor for 75 % of their time: other programs",
	    "1143  +14 %  workers=2");
}
END_TEST

/* Two streams of as much work; another user's has workers of his own, and takes nothing of these. */
#define TWO_USERS(uid)                                                                \
	"{\"node\":{\"machine\":{\"cpus\":8}},\"workers\":[{\"uid\":5},{\"uid\":6}]," \
	"\"jobs\":[{\"id\":3,\"uid\":5,\"stream\":9,\"active\":true,\"rate\":1000,"   \
	"\"waits\":{\"window_seconds\":10,\"decode\":9}},"                            \
	"{\"id\":4,\"uid\":" uid ",\"stream\":8,\"rate\":1000}],"                     \
	"\"streams\":[{\"id\":9,\"cache\":{\"points\":[" POINT(                       \
	    "file", "500", "100", "1", "0") "," POINT("packed", "250", "50", "1",     \
						      "0") "]}},{\"id\":8,\"median_us\":500}]}"

START_TEST(work_of_others)
{
	HAS(TWO_USERS("6"), "3", 0, "all kept as packed         2000  +100 %");
	HAS(TWO_USERS("5"), "3", 0, "all kept as packed         1333   +33 %");
}
END_TEST

/* Nothing says what a worker's time is: then nobody knows what more of them would bring. */
START_TEST(not_measured)
{
	static const char text[] =
	    "{\"jobs\":[{\"id\":3,\"stream\":9,\"active\":true,\"rate\":1000,"
	    "\"waits\":{\"window_seconds\":10,\"decode\":9}}],\"streams\":[{\"id\":9}]}";

	HAS(text, "3", 0, "source twice as fast");
	HAS_NOT(text, "3", "workers=", "cpuset of");
}
END_TEST

START_TEST(as_json)
{
	static const char text[] = BUSY("few_uses", "1", "\"decode\":8");
	struct json_in *status = NULL, *all = NULL;
	const struct json_in *one, *rows;
	struct diag diag = {.text = ""};
	char *out = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	ck_assert_int_eq(json_in_parse(text, strlen(text), 65536, &status, &diag), 0);
	ck_assert_int_eq(ctl_explain_json(status, "4", file, &diag), CTL_E_NONE);
	ck_assert_int_eq(ctl_explain_json(status, "resnet", file, &diag), 0);
	fclose(file);
	ck_assert_int_eq(json_in_parse(out, strlen(out), 65536, &all, &diag), 0);
	ck_assert_uint_eq(json_in_count(all), 1);
	one = json_in_item(all, 0);
	rows = json_in_member(one, "what_if");
	ck_assert_str_eq(json_in_string(json_in_member(one, "limit"), ""), "decode");
	ck_assert_str_eq(json_in_string(json_in_member(json_in_item(rows, 0), "change"), ""),
			 "workers");
	ck_assert_double_eq_tol(json_in_double(json_in_member(json_in_item(rows, 0), "gain"), 0),
				0.98, 1e-6);
	ck_assert_str_eq(json_in_string(json_in_member(json_in_item(rows, 1), "form"), ""),
			 "packed");
	ck_assert_uint_eq(json_in_u64(json_in_member(json_in_item(rows, 1), "bytes"), 0),
			  116000000);
	ck_assert(json_in_bool(json_in_member(json_in_item(rows, 1), "fits"), false));
	json_in_free(all);
	json_in_free(status);
	free(out);
}
END_TEST

/* Of another kind than they should be, or not there at all. */
#define ELSEWHERE(why)                                                                             \
	STATUS(CHOICE("packed", "best", "packed") ",\"peers\":{\"connected\":0,\"why_not\":\"" why \
						  "\"}")

START_TEST(why_other_nodes_have_no_part)
{
	HAS(ELSEWHERE("it lies \\u001bthere"), "3", 0, "Other nodes do not share it: it lies ");
	HAS_NOT(ELSEWHERE(""), "3", "Other nodes");
}
END_TEST

#define AHEAD(state)                                                                               \
	STATUS(CHOICE("packed", "best", "packed") ",\"peers\":{\"connected\":1,\"ahead\":\"" state \
						  "\",\"made_ahead\":17}")

START_TEST(what_is_made_in_idle_time)
{
	HAS(AHEAD("done"), "3", 0,
	    "for jobs all is made that this node owns; 17 such samples were");
	HAS(AHEAD("rests"), "3", 0, "slowly, as others want the processors; 17 ");
	HAS_NOT(AHEAD("of tomorrow"), "3", "While nothing");
}
END_TEST

START_TEST(strange)
{
	HAS("{\"jobs\":[{\"id\":3,\"stream\":1}],\"streams\":[{\"id\":1,\"cache\":{}}]}", "3", 0,
	    "job 3, -,", "Nothing is kept.");
	HAS("{\"jobs\":[{\"id\":3,\"stream\":1}],\"streams\":[{\"id\":1,\"cache\":{\"on\":true,"
	    "\"reason\":\"few_uses\",\"points\":[7,{},{\"name\":\"file\",\"total_us\":\"x\"}]}}]}",
	    "3", 0, "Keeping - would take less time", "Of 0 samples");
	HAS("{\"jobs\":[{\"id\":3}],\"streams\":7}", "3", 0, "This accessd keeps nothing");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, best);
	tcase_add_test(tcase, in_memory);
	tcase_add_test(tcase, not_kept);
	tcase_add_test(tcase, unmeasured);
	tcase_add_test(tcase, what_it_waits_for);
	tcase_add_test(tcase, other_reasons);
	tcase_add_test(tcase, no_cache);
	tcase_add_test(tcase, what_limits);
	tcase_add_test(tcase, busy_processors);
	tcase_add_test(tcase, work_of_others);
	tcase_add_test(tcase, not_measured);
	tcase_add_test(tcase, as_json);
	tcase_add_test(tcase, why_other_nodes_have_no_part);
	tcase_add_test(tcase, what_is_made_in_idle_time);
	tcase_add_test(tcase, strange);
}

int main(void)
{
	return suite_run("explain", add);
}
