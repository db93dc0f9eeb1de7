/* SPDX-License-Identifier: Apache-2.0 */

/* Options of every kind: what is taken, what is refused and in which words. */

#include "tools/option.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

struct config {
	bool flag;
	const char *text;
	uint64_t count, bytes;
	double real;
	struct option_list list;
	struct option_texts many;
	unsigned choice;
};

#define AT(member) offsetof(struct config, member)
static const struct option table[] = {
    {"flag", OPTION_FLAG, AT(flag), 0, 0, NULL, NULL, "a flag", 0},
    {"text", OPTION_TEXT, AT(text), 0, 0, NULL, "T", "a text", 0},
    {"count", OPTION_COUNT, AT(count), 1, 100, NULL, "N", "a number", 0},
    {"bytes", OPTION_BYTES, AT(bytes), 0, 0, NULL, "B", "a size", 0},
    {"real", OPTION_REAL, AT(real), 0, 10, NULL, "R", "a real", 0},
    {"list", OPTION_LIST, AT(list), 0, 1000, NULL, "L", "a list", 0},
    {"many", OPTION_MANY, AT(many), 0, 0, NULL, "M", "again and again", 0},
    {"choice", OPTION_CHOICE, AT(choice), 0, 0, "error|skip|substitute", "C", "one of three", 0},
};

static int parse(const char *line, struct config *config, char **rest, unsigned *n_rest,
		 struct diag *diag)
{
	static char words[256];
	static char program[] = "program";
	char *argv[32] = {program}, *save = NULL;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	*config = (struct config){0};
	return option_parse(table, BASE_ARRAY_LEN(table), argc, argv, config, rest, n_rest, diag);
}

START_TEST(every_kind_is_taken)
{
	struct config config;
	struct diag diag;
	char *rest[32];
	unsigned n_rest = 0;

	ck_assert_int_eq(
	    parse("a --flag --text=x=y --count 7 --bytes 1.5M --real 0.25 --list 1,2.5,3 "
		  "--many one --many=two --choice skip b - -- --flag",
		  &config, rest, &n_rest, &diag),
	    0);
	ck_assert(config.flag);
	ck_assert_str_eq(config.text, "x=y");
	ck_assert_uint_eq(config.count, 7);
	ck_assert_uint_eq(config.bytes, 1536 * 1024);
	ck_assert_double_eq(config.real, 0.25);
	ck_assert_uint_eq(config.list.n, 3);
	ck_assert_double_eq(option_dealt(&config.list, 4, 0), 2.5);
	ck_assert_uint_eq(config.many.n, 2);
	ck_assert_str_eq(config.many.text[1], "two");
	ck_assert_uint_eq(config.choice, 1);
	ck_assert_uint_eq(n_rest, 4);
	ck_assert_str_eq(rest[0], "a");
	ck_assert_str_eq(rest[2], "-");
	ck_assert_str_eq(rest[3], "--flag");
}
END_TEST

START_TEST(a_list_that_is_not_given_has_the_default)
{
	struct option_list list = {.n = 0};

	ck_assert_double_eq(option_dealt(&list, 3, 42), 42);
}
END_TEST

static const struct {
	const char *line, *says;
} refused[] = {
    {"--nothing", "there is no option --nothing"},
    {"-v", "two dashes"},
    {"--flag=yes", "no value"},
    {"--count", "needs a value"},
    {"--count 0", "from 1 to 100"},
    {"--count 101", "from 1 to 100"},
    {"--count 7x", "whole number"},
    {"--count -1", "whole number"},
    {"--count 99999999999999999999", "whole number"},
    {"--bytes 12Q", "64M"},
    {"--real 11", "from 0 to 10"},
    {"--real nan", "from 0 to 10"},
    {"--real 0x1", "from 0 to 10"},
    {"--list 1,,2", "from 0 to 1000"},
    {"--list 1,2;3", "commas"},
    {"--list 1001", "from 0 to 1000"},
    {"--choice ski", "error|skip|substitute"},
    {"--choice skip|error", "error|skip|substitute"},
    {"--choice", "needs a value: C"},
};

START_TEST(what_is_wrong_is_said)
{
	struct config config;
	struct diag diag = {.text = ""};
	char *rest[32];
	unsigned n_rest = 0;

	ck_assert_int_eq(parse(refused[_i].line, &config, rest, &n_rest, &diag), OPTION_E_BAD);
	ck_assert_msg(strstr(diag.text, refused[_i].says), "\"%s\" lacks \"%s\"", diag.text,
		      refused[_i].says);
}
END_TEST

/* Of the programs that have letters: together, with their values behind them or apart. */
START_TEST(letters)
{
	static const struct option some[] = {
	    {"flag", OPTION_FLAG, AT(flag), 0, 0, NULL, NULL, "a flag", 'f'},
	    {"text", OPTION_TEXT, AT(text), 0, 0, NULL, "T", "a text", 0},
	    {"count", OPTION_COUNT, AT(count), 1, 100, NULL, "N", "a number", 'n'},
	};
	static const struct {
		const char *words[4];
		uint64_t count;
		const char *says; /* NULL: it is taken */
	} lines[] = {
	    {{"-n", "7", "-f"}, 7, NULL},
	    {{"-fn7"}, 7, NULL},
	    {{"-f", "-n8"}, 8, NULL},
	    {{"-f", "--count", "9"}, 9, NULL},
	    {{"-f", "--", "-n7"}, 0, NULL},
	    {{"-x"}, 0, "there is no option -x"},
	    {{"-ft"}, 0, "there is no option -t"},
	    {{"-fn"}, 0, "-n needs a value: N"},
	    {{"-n101"}, 0, "from 1 to 100"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(lines); i++) {
		char words[4][16], *argv[5] = {words[0]}, *rest[5];
		struct config config = {.count = 0};
		struct diag diag = {.text = ""};
		unsigned n_rest;
		int argc = 1, r;

		for (unsigned k = 0; lines[i].words[k]; k++) {
			snprintf(words[k], sizeof(words[k]), "%s", lines[i].words[k]);
			argv[argc++] = words[k];
		}
		r = option_parse(some, BASE_ARRAY_LEN(some), argc, argv, &config, rest, &n_rest,
				 &diag);
		ck_assert_int_eq(r, lines[i].says ? OPTION_E_BAD : 0);
		ck_assert_msg(!lines[i].says || strstr(diag.text, lines[i].says), "%s", diag.text);
		ck_assert(lines[i].says || config.flag);
		ck_assert_uint_eq(config.count, lines[i].count);
	}
}
END_TEST

START_TEST(help_fits_the_terminal)
{
	static const struct option one[] = {
	    {"an-option", OPTION_TEXT, 0, 0, 0, NULL, "VALUE",
	     "words and words and words and words and words and words and words and words and end",
	     0},
	};
	char *text = NULL, *save = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	unsigned lines = 0;

	option_print(one, 1, out);
	fclose(out);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		ck_assert_uint_le(strlen(line), 80);
		lines++;
	}
	ck_assert_uint_eq(lines, 2);
	free(text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, every_kind_is_taken);
	tcase_add_test(tcase, a_list_that_is_not_given_has_the_default);
	tcase_add_loop_test(tcase, what_is_wrong_is_said, 0, BASE_ARRAY_LEN(refused));
	tcase_add_test(tcase, letters);
	tcase_add_test(tcase, help_fits_the_terminal);
}

int main(void)
{
	return suite_run("option", add);
}
