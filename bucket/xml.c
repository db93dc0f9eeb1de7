/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libexpat, for the answers of object stores. It is told the encoding, UTF-8, which all of them have, and is stopped at a
 * DOCTYPE: so there are no entities but the five, and nothing in a text becomes longer than it is written.
 */

#include "bucket/xml.h"

#include <expat.h>
#include <limits.h>

struct reading {
	XML_Parser parser;
	xml_fn fn;
	void *arg;
	int r; /* what stopped it; 0: nothing */
	const char *why;
	char path[XML_MOST_PATH];
	size_t path_bytes, depth;
	char text[XML_MOST_TEXT];
	size_t text_bytes;
};

static void stop(struct reading *reading, int r, const char *why)
{
	if (!reading->r) {
		reading->r = r;
		reading->why = why;
	}
	XML_StopParser(reading->parser, XML_FALSE);
}

static void XMLCALL on_begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct reading *reading = arg;
	const size_t bytes = strlen(name), at = reading->path_bytes + (reading->depth > 0);

	(void)attributes;
	if (reading->depth == XML_MOST_DEPTH || bytes >= sizeof(reading->path) - at) {
		stop(reading, -EBADMSG, "it is nested too deeply");
		return;
	}
	if (reading->depth++ > 0)
		reading->path[reading->path_bytes] = '/';
	memcpy(reading->path + at, name, bytes + 1);
	reading->path_bytes = at + bytes;
	reading->text_bytes = 0;
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int bytes)
{
	struct reading *reading = arg;

	if ((size_t)bytes >= sizeof(reading->text) - reading->text_bytes) {
		stop(reading, -EBADMSG, "a text in it is too long");
		return;
	}
	memcpy(reading->text + reading->text_bytes, text, (size_t)bytes);
	reading->text_bytes += (size_t)bytes;
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
	struct reading *reading = arg;
	const size_t bytes = strlen(name);
	int r;

	reading->text[reading->text_bytes] = '\0';
	r = reading->fn(reading->arg, reading->path, reading->text);
	if (r)
		stop(reading, r, NULL);
	reading->depth--;
	reading->path_bytes -= bytes + (reading->depth > 0);
	reading->path[reading->path_bytes] = '\0';
	reading->text_bytes = 0;
}

static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
			       const XML_Char *public, int has_internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)has_internal;
	stop(arg, -EBADMSG, "it has a DOCTYPE");
}

int xml_read(const char *text, size_t size, xml_fn fn, void *arg, struct diag *diag)
{
	_cleanup_free_ struct reading *reading = calloc(1, sizeof(*reading));
	XML_Parser parser = XML_ParserCreate("UTF-8");
	int r = -ENOMEM;

	if (!reading || !parser)
		goto out;
	*reading = (struct reading){.parser = parser, .fn = fn, .arg = arg};
	XML_SetUserData(parser, reading);
	XML_SetElementHandler(parser, on_begin, on_end);
	XML_SetCharacterDataHandler(parser, on_text);
	XML_SetStartDoctypeDeclHandler(parser, on_doctype);
	r = 0;
	if (size > INT_MAX || XML_Parse(parser, text, (int)size, XML_TRUE) != XML_STATUS_OK) {
		const enum XML_Error error = XML_GetErrorCode(parser);

		r = reading->r ? reading->r : error == XML_ERROR_NO_MEMORY ? -ENOMEM : -EBADMSG;
		if (!reading->r || reading->why)
			diag_set(diag, "line %lu: %s",
				 (unsigned long)XML_GetCurrentLineNumber(parser),
				 reading->why ? reading->why : XML_ErrorString(error));
	}
out:
	if (parser)
		XML_ParserFree(parser);
	return r;
}

bool xml_is(const char *path, const char *end)
{
	const size_t bytes = strlen(path), wanted = strlen(end);

	return bytes >= wanted && strcmp(path + bytes - wanted, end) == 0 &&
	       (bytes == wanted || path[bytes - wanted - 1] == '/');
}
