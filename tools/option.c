/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Options as a table. getopt_long() is not used because it knows neither types nor ranges, and its
 * messages do not say how to mend what is wrong; the grammar here is the same, without
 * abbreviations (an abbreviation in a script breaks when an option is added). Few programs have
 * options of one letter.
 */

#include "tools/option.h"

#include <math.h>
#include <stdarg.h>

static const struct option *option_find(const struct option *table, unsigned n, const char *name,
					size_t length)
{
	for (unsigned i = 0; i < n; i++)
		if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
			return &table[i];
	return NULL;
}

static int option_refuse(const struct option *option, const char *value, const char *expected,
			 struct diag *diag)
{
	return diag_fail(diag, OPTION_E_BAD, "--%s %s: expected %s", option->name,
			 BASE_QUOTED(value, 128), expected);
}

static int option_refuse_range(const struct option *option, const char *value, struct diag *diag)
{
	char expected[96];

	snprintf(expected, sizeof(expected), "a number from %.15g to %.15g", option->least,
		 option->most);
	return option_refuse(option, value, expected, diag);
}

/* A number at text up to a comma or the end; *ret_end is where it stopped. */
static bool option_read_real(const struct option *option, const char *text, const char **ret_end,
			     double *ret)
{
	char *end;
	double value;

	if (((*text < '0' || *text > '9') && *text != '.') || strpbrk(text, "xX"))
		return false; /* no sign, no name, no hexadecimal */
	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno == ERANGE || !isfinite(value))
		return false;
	if (value < option->least || value > option->most)
		return false;
	*ret_end = end;
	*ret = value;
	return true;
}

static int option_set_list(const struct option *option, const char *value, struct option_list *ret,
			   struct diag *diag)
{
	const char *end = value;
	unsigned n = 0;

	do {
		if (n == OPTION_LIST_MAX)
			return option_refuse(option, value, "a shorter list", diag);
		if (!option_read_real(option, end, &end, &ret->value[n]))
			return option_refuse_range(option, value, diag);
		n++;
	} while (*end++ == ',');
	if (end[-1] != '\0')
		return option_refuse(option, value, "numbers with commas between them", diag);
	ret->n = n;
	return 0;
}

static int option_set_count(const struct option *option, const char *value, uint64_t *ret,
			    struct diag *diag)
{
	const char *end = value;
	uint64_t count;

	if (!base_parse_number(&end, UINT64_MAX, &count) || *end)
		return option_refuse(option, value, "a whole number", diag);
	if ((double)count < option->least || (double)count > option->most)
		return option_refuse_range(option, value, diag);
	*ret = count;
	return 0;
}

static int option_set_choice(const struct option *option, const char *value, unsigned *ret,
			     struct diag *diag)
{
	const char *word = option->choices;
	size_t length = strlen(value);

	for (unsigned i = 0; word; i++) {
		size_t this = strcspn(word, "|");

		if (this == length && memcmp(word, value, length) == 0) {
			*ret = i;
			return 0;
		}
		word = word[this] ? word + this + 1 : NULL;
	}
	return option_refuse(option, value, option->choices, diag);
}

static int option_set_many(const struct option *option, const char *value, struct option_texts *ret,
			   struct diag *diag)
{
	if (ret->n == OPTION_LIST_MAX)
		return option_refuse(option, value, "not so many of this option", diag);
	ret->text[ret->n++] = value;
	return 0;
}

static int option_set(const struct option *option, const char *value, void *config,
		      struct diag *diag)
{
	void *at = (char *)config + option->offset;
	const char *end;

	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = value;
		return 0;
	case OPTION_COUNT:
		return option_set_count(option, value, at, diag);
	case OPTION_BYTES:
		if (base_parse_bytes(value, at) < 0)
			return option_refuse(option, value, "bytes, as in 4096, 64M or 1.5G", diag);
		return 0;
	case OPTION_REAL:
		if (!option_read_real(option, value, &end, at) || *end != '\0')
			return option_refuse_range(option, value, diag);
		return 0;
	case OPTION_LIST:
		return option_set_list(option, value, at, diag);
	case OPTION_CHOICE:
		return option_set_choice(option, value, at, diag);
	case OPTION_MANY:
		return option_set_many(option, value, at, diag);
	}
	return OPTION_E_BAD;
}

/* The option that argv[*i] names and its value ("" for a flag); *i moves on to the value. */
static int option_match(const struct option *table, unsigned n, int argc, char **argv, int *i,
			const struct option **ret, const char **ret_value, struct diag *diag)
{
	const char *name = argv[*i] + 2;
	size_t length = strcspn(name, "=");
	const struct option *option = option_find(table, n, name, length);

	if (!option)
		return diag_fail(diag, OPTION_E_BAD, "there is no option %s; --help lists them",
				 BASE_QUOTED(argv[*i], 128));
	*ret = option;
	*ret_value = "";
	if (option->kind == OPTION_FLAG) {
		if (name[length] == '=')
			return option_refuse(option, name + length + 1, "no value", diag);
		return 0;
	}
	if (name[length] == '=') {
		*ret_value = name + length + 1;
		return 0;
	}
	if (*i + 1 >= argc)
		return diag_fail(diag, OPTION_E_BAD, "--%s needs a value: %s", option->name,
				 option->arg);
	*ret_value = argv[++*i];
	return 0;
}

static bool option_has_letters(const struct option *table, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (table[i].letter)
			return true;
	return false;
}

/* A word of letters: flags, then maybe one whose value is the rest of the word, or the next one. */
static int option_letters(const struct option *table, unsigned n, int argc, char **argv, int *i,
			  void *config, struct diag *diag)
{
	for (const char *at = argv[*i] + 1; *at; at++) {
		const struct option *option = NULL;
		int r;

		for (unsigned k = 0; k < n; k++)
			option = table[k].letter == *at ? &table[k] : option;
		if (!option)
			return diag_fail(diag, OPTION_E_BAD,
					 "there is no option -%c; --help lists them", *at);
		if (option->kind == OPTION_FLAG) {
			option_set(option, "", config, diag);
			continue;
		}
		if (!at[1] && *i + 1 >= argc)
			return diag_fail(diag, OPTION_E_BAD, "-%c needs a value: %s", *at,
					 option->arg);
		r = option_set(option, at[1] ? at + 1 : argv[*i + 1], config, diag);
		*i += at[1] ? 0 : 1;
		return r;
	}
	return 0;
}

int option_parse(const struct option *table, unsigned n, int argc, char **argv, void *config,
		 char **ret_rest, unsigned *ret_n_rest, struct diag *diag)
{
	unsigned n_rest = 0;
	bool options = true;

	for (int i = 1; i < argc; i++) {
		const struct option *option = NULL;
		const char *value = NULL;
		int r;

		if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
			ret_rest[n_rest++] = argv[i];
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			options = false;
			continue;
		}
		if (argv[i][1] != '-' && option_has_letters(table, n)) {
			r = option_letters(table, n, argc, argv, &i, config, diag);
			if (r)
				return r;
			continue;
		}
		if (argv[i][1] != '-')
			return diag_fail(diag, OPTION_E_BAD,
					 "there is no option %s; options begin with two dashes",
					 argv[i]);
		r = option_match(table, n, argc, argv, &i, &option, &value, diag);
		r = r ? r : option_set(option, value, config, diag);
		if (r)
			return r;
	}
	*ret_n_rest = n_rest;
	return 0;
}

void option_wrap(FILE *out, int left, int width, const char *fmt, ...)
{
	_cleanup_free_ char *all = NULL;
	const char *text = "";
	int column = 0;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&all, fmt, args) >= 0)
		text = all;
	va_end(args);
	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > 0 && column + 1 + length > width) {
			fprintf(out, "\n%*s", left, "");
			column = 0;
		}
		column += fprintf(out, "%s%.*s", column > 0 ? " " : "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void option_print(const struct option *table, unsigned n, FILE *out)
{
	enum { OPTION_LEFT = 26, OPTION_WIDTH = 80 };

	for (unsigned i = 0; i < n; i++) {
		char letter[] = {',', ' ', '-', table[i].letter, '\0'};
		int used =
		    fprintf(out, "  --%s%s%s%s", table[i].name, table[i].letter ? letter : "",
			    table[i].arg ? " " : "", table[i].arg ? table[i].arg : "");

		if (used >= OPTION_LEFT)
			used = fprintf(out, "\n") - 1;
		fprintf(out, "%*s", OPTION_LEFT - used, "");
		option_wrap(out, OPTION_LEFT, OPTION_WIDTH - OPTION_LEFT, "%s", table[i].help);
	}
}

double option_dealt(const struct option_list *list, unsigned index, double otherwise)
{
	return list->n > 0 ? list->value[index % list->n] : otherwise;
}
