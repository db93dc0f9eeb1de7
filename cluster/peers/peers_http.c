/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libcurl (base/curl.h), for etcd's JSON gateway: needed by nobody who has no etcd. Answers are a server's, which may be anybody:
 * they are bounded here, and looked at elsewhere. Redirections are not followed, no proxy is used, and nothing but HTTP is
 * spoken.
 */

#include "cluster/peers/peers_http.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdio.h>

#include "base/curl.h"

#define CONNECT_MS 2000L

struct text { /* grows up to limit */
	char *data;
	size_t size, room, limit;
};

struct peers_http {
	int stop_fd;
	struct curl_slist *headers, *of_stream; /* of_stream: may be the same */
	char local[64];
	CURLM *multi;
	CURL *stream; /* NULL: none is open */
	struct text line;
	peers_http_fn fn;
	void *arg;
};

int peers_http_prepare(struct diag *diag)
{
	const char *why = curl_load();

	if (why)
		diag_set(diag,
			 "peers = etcd needs libcurl (Debian: package libcurl4), which cannot be "
			 "used: %s",
			 why);
	return why ? -ENOENT : 0;
}

int peers_http_new(int stop_fd, struct peers_http **ret)
{
	struct peers_http *http = calloc(1, sizeof(*http));

	if (!http)
		return -ENOMEM;
	http->stop_fd = stop_fd;
	http->multi = curl.multi_init();
	if (!http->multi || peers_http_token(http, NULL)) {
		peers_http_free(http);
		return -ENOMEM;
	}
	*ret = http;
	return 0;
}

void peers_http_free(struct peers_http *http)
{
	if (!http)
		return;
	peers_http_close(http);
	curl.multi_cleanup(http->multi);
	curl.slist_free_all(http->headers);
	free(http);
}

int peers_http_token(struct peers_http *http, const char *token)
{
	struct curl_slist *headers = curl.slist_append(NULL, "Content-Type: application/json");
	struct curl_slist *whole = headers;
	_cleanup_free_ char *line = NULL;

	if (headers && token) {
		whole = asprintf(&line, "Authorization: %s", token) > 0
			    ? curl.slist_append(headers, line)
			    : NULL;
		if (!whole)
			curl.slist_free_all(headers);
	}
	if (!whole)
		return -ENOMEM;
	if (http->headers != http->of_stream)
		curl.slist_free_all(http->headers);
	http->headers = whole;
	return 0;
}

static bool append(struct text *text, const char *data, size_t size)
{
	if (size > text->limit - text->size ||
	    !base_grow(&text->data, &text->room, text->size + size + 1, 1))
		return false;
	memcpy(text->data + text->size, data, size);
	text->size += size;
	text->data[text->size] = '\0';
	return true;
}

static size_t on_answer(char *data, size_t one, size_t size, void *arg)
{
	return append(arg, data, one * size) ? size : 0;
}

static size_t on_stream(char *data, size_t one, size_t size, void *arg)
{
	struct peers_http *http = arg;
	size_t left = one * size;

	while (left > 0) {
		const char *end = memchr(data, '\n', left);
		const size_t n = end ? (size_t)(end - data) : left;

		if (!append(&http->line, data, n))
			return 0;
		if (end && !http->fn(http->arg, http->line.data, http->line.size))
			return 0;
		if (end)
			http->line.size = 0;
		data += n + (end != NULL);
		left -= n + (end != NULL);
	}
	return size;
}

/* CURLOPT_PROTOCOLS_STR, since libcurl 7.85, and before it CURLOPT_PROTOCOLS with bits: the library that is found may be older
 * than its header, or newer. */
enum { HTTP_PROTOCOLS_STR = 10318, HTTP_PROTOCOLS = 181, HTTP_BOTH = 3 };

static CURL *easy_of(const struct peers_http *http, const char *url, const char *body)
{
	CURL *easy = curl.easy_init();

	if (!easy)
		return NULL;
	curl.easy_setopt(easy, CURLOPT_URL, url);
	if (curl.easy_setopt(easy, (CURLoption)HTTP_PROTOCOLS_STR, "http,https") != CURLE_OK)
		curl.easy_setopt(easy, (CURLoption)HTTP_PROTOCOLS, (long)HTTP_BOTH);
	curl.easy_setopt(easy, CURLOPT_PROXY, "");
	curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl.easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
	curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
	return easy;
}

/* ---- one answer ---- */

int peers_http_post(struct peers_http *http, const char *url, const char *body, int timeout_ms,
		    size_t limit, char **ret, size_t *ret_size, struct diag *diag)
{
	struct text text = {.limit = limit};
	CURL *easy = easy_of(http, url, body);
	const char *local = NULL;
	long status = 0;
	CURLcode code = CURLE_OUT_OF_MEMORY;

	if (easy) {
		curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
		curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
		curl.easy_setopt(easy, CURLOPT_WRITEDATA, &text);
		code = curl.easy_perform(easy);
	}
	if (code == CURLE_OK && curl.easy_getinfo(easy, CURLINFO_LOCAL_IP, &local) == CURLE_OK &&
	    local && strlen(local) < sizeof(http->local))
		memcpy(http->local, local, strlen(local) + 1);
	if (code == CURLE_OK)
		code = curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl.easy_cleanup(easy);
	if (code == CURLE_OK && !append(&text, "", 0))
		code = CURLE_OUT_OF_MEMORY;
	if (code != CURLE_OK) {
		free(text.data);
		return diag_fail(
		    diag, -EIO, "%s: %s (is the URL right? `curl -d {} %s` asks it)", url,
		    code == CURLE_WRITE_ERROR ? "its answer is too long" : curl.easy_strerror(code),
		    url);
	}
	*ret = text.data;
	*ret_size = text.size;
	return status < 400 ? 0 : PEERS_HTTP_E_REFUSED;
}

const char *peers_http_local(const struct peers_http *http)
{
	return http->local;
}

/* ---- lines ---- */

int peers_http_open(struct peers_http *http, const char *url, const char *body, size_t limit,
		    peers_http_fn fn, void *arg)
{
	peers_http_close(http);
	http->stream = easy_of(http, url, body);
	if (!http->stream)
		return -ENOMEM;
	http->of_stream = http->headers;
	http->line.limit = limit;
	http->fn = fn;
	http->arg = arg;
	curl.easy_setopt(http->stream, CURLOPT_FAILONERROR, 1L);
	curl.easy_setopt(http->stream, CURLOPT_WRITEFUNCTION, on_stream);
	curl.easy_setopt(http->stream, CURLOPT_WRITEDATA, http);
	if (curl.multi_add_handle(http->multi, http->stream) == CURLM_OK)
		return 0;
	peers_http_close(http);
	return -ENOMEM;
}

void peers_http_close(struct peers_http *http)
{
	if (http->stream) {
		curl.multi_remove_handle(http->multi, http->stream);
		curl.easy_cleanup(http->stream);
	}
	http->stream = NULL;
	if (http->of_stream != http->headers)
		curl.slist_free_all(http->of_stream);
	http->of_stream = NULL;
	free(http->line.data);
	http->line = (struct text){.data = NULL};
}

int peers_http_wait(struct peers_http *http, int ms, struct diag *diag)
{
	struct curl_waitfd extra = {.fd = http->stop_fd, .events = CURL_WAIT_POLLIN};
	int running = 0, left;
	const CURLMsg *message;
	const char *url = NULL;

	if (curl.multi_perform(http->multi, &running) == CURLM_OK && running > 0 &&
	    curl.multi_poll(http->multi, &extra, 1, ms, NULL) == CURLM_OK &&
	    curl.multi_perform(http->multi, &running) == CURLM_OK && running > 0)
		return 0;
	message = curl.multi_info_read(http->multi, &left);
	curl.easy_getinfo(http->stream, CURLINFO_EFFECTIVE_URL, &url);
	return diag_fail(
	    diag, -ECONNRESET,
	    "%s: it sends no more (%s): it, or the next URL of `peers`, is asked again",
	    url ? url : "", message ? curl.easy_strerror(message->data.result) : "it hung up");
}
