/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One place escapes for all: a caller that forgets to quote a path, a reason or a client's name would
 * let whoever made it write keys of his own into our log. printf() cannot tell us where its texts
 * begin, so the few conversions that log lines use are done one by one here.
 */

#include "base/log_keys.h"

#include <ctype.h>
#include <stdio.h>

struct log_keys {
	char *ret;
	size_t size, used;
	bool is_quoted; /* between two '"' of the format */
};

struct log_conversion {
	bool is_alternate; /* # */
	int precision;     /* -1: none */
	unsigned longs;    /* l: 1, ll: 2, z: 1 */
	char type;
};

static void log_keys_put(struct log_keys *keys, const char *text, size_t size)
{
	size = BASE_MIN(size, keys->size - 1 - keys->used);
	memcpy(keys->ret + keys->used, text, size);
	keys->used += size;
	keys->ret[keys->used] = '\0';
}

static bool is_escape(const char *text, size_t size)
{
	return size >= 4 && text[1] == 'x' && isxdigit((unsigned char)text[2]) &&
	       isxdigit((unsigned char)text[3]);
}

static void log_keys_put_quoted(struct log_keys *keys, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];
		char escape[8];

		if (byte >= 0x20 && byte != 0x7f && byte != '"' &&
		    (byte != '\\' || is_escape(text + i, size - i))) {
			log_keys_put(keys, text + i, 1);
			continue;
		}
		if (keys->size - 1 - keys->used < 4)
			return; /* half an escape could begin another one */
		snprintf(escape, sizeof(escape), "\\x%02x", byte);
		log_keys_put(keys, escape, 4);
	}
}

static void log_keys_put_text(struct log_keys *keys, const char *text, size_t size)
{
	if (keys->is_quoted)
		log_keys_put_quoted(keys, text, size);
	else
		log_keys_put(keys, text, size);
}

/* What follows a '%'. Returns what follows the conversion. */
static const char *log_conversion_parse(const char *at, va_list *args, struct log_conversion *ret)
{
	*ret = (struct log_conversion){.precision = -1};
	for (; *at == '#'; at++)
		ret->is_alternate = true;
	if (*at == '.' && at[1] == '*') {
		ret->precision = va_arg(*args, int);
		at += 2;
	} else if (*at == '.') {
		ret->precision = 0;
		for (at++; isdigit((unsigned char)*at) && ret->precision < 10000; at++)
			ret->precision = ret->precision * 10 + (*at - '0');
	}
	for (; *at == 'l' || *at == 'z'; at++)
		ret->longs++;
	ret->type = *at;
	return *at ? at + 1 : at;
}

static void log_keys_put_string(struct log_keys *keys, const char *text, int precision)
{
	text = text ? text : "(null)";
	log_keys_put_text(keys, text,
			  precision < 0 ? strlen(text) : strnlen(text, (size_t)precision));
}

static long long log_keys_signed(va_list *args, unsigned longs)
{
	if (longs > 1)
		return va_arg(*args, long long);
	return longs ? va_arg(*args, long) : va_arg(*args, int);
}

static unsigned long long log_keys_unsigned(va_list *args, unsigned longs)
{
	if (longs > 1)
		return va_arg(*args, unsigned long long);
	return longs ? va_arg(*args, unsigned long) : va_arg(*args, unsigned);
}

/* false: no conversion that is known here. */
static bool log_keys_convert(struct log_keys *keys, const struct log_conversion *how, va_list *args)
{
	char text[400]; /* DBL_MAX has 309 digits */
	char byte;

	switch (how->type) {
	case 's':
		log_keys_put_string(keys, va_arg(*args, const char *), how->precision);
		return true;
	case 'c':
		byte = (char)va_arg(*args, int);
		log_keys_put_text(keys, &byte, 1);
		return true;
	case '%':
		log_keys_put(keys, "%", 1);
		return true;
	case 'd':
	case 'i':
		snprintf(text, sizeof(text), "%.*lld", how->precision,
			 log_keys_signed(args, how->longs));
		break;
	case 'u':
		snprintf(text, sizeof(text), "%.*llu", how->precision,
			 log_keys_unsigned(args, how->longs));
		break;
	case 'x':
		snprintf(text, sizeof(text), how->is_alternate ? "%#.*llx" : "%.*llx",
			 how->precision, log_keys_unsigned(args, how->longs));
		break;
	case 'f':
		snprintf(text, sizeof(text), "%.*f", how->precision < 0 ? 6 : how->precision,
			 va_arg(*args, double));
		break;
	default:
		return false;
	}
	log_keys_put(keys, text, strlen(text));
	return true;
}

size_t log_keys_format(char *ret, size_t size, const char *fmt, va_list args)
{
	struct log_keys keys = {.ret = ret, .size = size};
	struct log_conversion how;
	va_list mine;

	va_copy(mine, args);
	ret[0] = '\0';
	while (*fmt) {
		size_t plain = strcspn(fmt, "%\"");

		log_keys_put(&keys, fmt, plain);
		fmt += plain;
		if (*fmt == '"') {
			keys.is_quoted = !keys.is_quoted;
			log_keys_put(&keys, fmt++, 1);
		} else if (*fmt == '%') {
			fmt = log_conversion_parse(fmt + 1, &mine, &how);
			if (!log_keys_convert(&keys, &how, &mine))
				break;
		}
	}
	va_end(mine);
	return keys.used;
}
