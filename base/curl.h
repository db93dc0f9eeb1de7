/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libcurl, which is found when the program runs: it brings twenty other libraries along, and few need any of them. For the
 * one file of a program that speaks HTTP, which includes <curl/curl.h> (CURL_DISABLE_TYPECHECK) before.
 */

#include "base/library.h"

#define CURL_EACH(F)                                           \
	F(curl, global_init, curl_global_init)                 \
	F(curl, getdate, curl_getdate)                         \
	F(curl, easy_init, curl_easy_init)                     \
	F(curl, easy_setopt, curl_easy_setopt)                 \
	F(curl, easy_perform, curl_easy_perform)               \
	F(curl, easy_getinfo, curl_easy_getinfo)               \
	F(curl, easy_strerror, curl_easy_strerror)             \
	F(curl, easy_cleanup, curl_easy_cleanup)               \
	F(curl, slist_append, curl_slist_append)               \
	F(curl, slist_free_all, curl_slist_free_all)           \
	F(curl, multi_init, curl_multi_init)                   \
	F(curl, multi_setopt, curl_multi_setopt)               \
	F(curl, multi_add_handle, curl_multi_add_handle)       \
	F(curl, multi_remove_handle, curl_multi_remove_handle) \
	F(curl, multi_perform, curl_multi_perform)             \
	F(curl, multi_poll, curl_multi_poll)                   \
	F(curl, multi_socket_action, curl_multi_socket_action) \
	F(curl, multi_info_read, curl_multi_info_read)         \
	F(curl, multi_cleanup, curl_multi_cleanup)

static struct {
	CURL_EACH(LIBRARY_MEMBER)
} curl;

/* NULL, or why that cannot be. */
static const char *curl_load(void)
{
	static const struct library_name names[] = {CURL_EACH(LIBRARY_NAME)};
	const char *why = library_load("libcurl.so.4", names, BASE_ARRAY_LEN(names));

	if (why) /* Debian has both */
		why = library_load("libcurl-gnutls.so.4", names, BASE_ARRAY_LEN(names));
	if (why) /* why not the first */
		why = library_load("libcurl.so.4", names, BASE_ARRAY_LEN(names));
	if (!why && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		why = "it does not begin";
	return why;
}
