/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libcurl, which is found when the program runs: it brings twenty other libraries along, and few need any of them. For the
 * one file of a program that speaks HTTP, which includes <curl/curl.h> (CURL_DISABLE_TYPECHECK) before.
 */

#include "base/library.h"

static struct {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_getdate) *getdate;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_setopt) *easy_setopt;
	__typeof__(curl_easy_perform) *easy_perform;
	__typeof__(curl_easy_getinfo) *easy_getinfo;
	__typeof__(curl_easy_strerror) *easy_strerror;
	__typeof__(curl_easy_cleanup) *easy_cleanup;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free_all;
	__typeof__(curl_multi_init) *multi_init;
	__typeof__(curl_multi_setopt) *multi_setopt;
	__typeof__(curl_multi_add_handle) *multi_add_handle;
	__typeof__(curl_multi_remove_handle) *multi_remove_handle;
	__typeof__(curl_multi_perform) *multi_perform;
	__typeof__(curl_multi_poll) *multi_poll;
	__typeof__(curl_multi_socket_action) *multi_socket_action;
	__typeof__(curl_multi_info_read) *multi_info_read;
	__typeof__(curl_multi_cleanup) *multi_cleanup;
} curl;

/* NULL, or why that cannot be. */
static const char *curl_load(void)
{
#define NAME(name)                                \
	{                                         \
		"curl_" #name, (void *)&curl.name \
	}
	static const struct library_name names[] = {
	    NAME(global_init),         NAME(getdate),
	    NAME(easy_init),           NAME(easy_setopt),
	    NAME(easy_perform),        NAME(easy_getinfo),
	    NAME(easy_strerror),       NAME(easy_cleanup),
	    NAME(slist_append),        NAME(slist_free_all),
	    NAME(multi_init),          NAME(multi_setopt),
	    NAME(multi_add_handle),    NAME(multi_remove_handle),
	    NAME(multi_perform),       NAME(multi_poll),
	    NAME(multi_socket_action), NAME(multi_info_read),
	    NAME(multi_cleanup),
	};
#undef NAME
	const char *why = library_load("libcurl.so.4", names, BASE_ARRAY_LEN(names));

	if (why) /* Debian has both */
		why = library_load("libcurl-gnutls.so.4", names, BASE_ARRAY_LEN(names));
	if (why) /* why not the first */
		why = library_load("libcurl.so.4", names, BASE_ARRAY_LEN(names));
	if (!why && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		why = "it does not begin";
	return why;
}
