/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libcurl, found when the program runs (base/curl.h), since who reads files alone needs none. HTTP/1.1 over as many
 * connections as there are requests: a stream of HTTP/2 shares one connection's window and losses, and object stores are
 * made for many connections.
 *
 * Proxies are those of the environment (https_proxy, no_proxy ...), certificates those of AWS_CA_BUNDLE, CURL_CA_BUNDLE,
 * SSL_CERT_FILE and SSL_CERT_DIR, or the system's. What a server says is bounded here and looked at elsewhere. Nothing here
 * logs, and texts of errors name a host, never a header or what is behind a URL's "?".
 */

#include "bucket/http.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/curl.h"
#include "bucket/http_proxy.h"

#define CONNECT_MS 3000L
/* A neighbour who may not exist gets a second to connect. It may have to ask others for a first token, as Azure's does. */
#define HASTY_MS 1000L
#define HASTY_ANSWER_MS 5000L
#define SLOW_S 20L        /* so long, the first byte's wait with it, */
#define SLOW_BYTES 32000L /* with fewer a second, as of ranges */
#define MOST_WAIT_S UINT64_C(30)
#define MOST_REDIRECTIONS 5L
#define MOST_CONNECTIONS 256L
#define MOST_SAID (64 << 10) /* of an answer that is no object */
#define BUFFER_BYTES (128L << 10)

struct exchange { /* a request and its answer */
	CURL *easy;
	struct curl_slist *headers;
	struct http_answer answer;
	size_t room, most; /* of the body that is kept */
	bool is_too_long, is_hasty;
	char why[CURL_ERROR_SIZE];
};

struct http {
	struct exchange exchange;
};

struct http_transfer {
	struct exchange exchange;
	struct http_many *many;
	const struct http_sink *sink;
	void *arg;
	bool has_head;
	struct http_transfer *next; /* of those that are free */
};

struct http_many {
	CURLM *multi;
	int epoll_fd;
	uint64_t due_ns;
	struct http_transfer *free;
};

int http_prepare(struct diag *diag)
{
	const char *why = curl_load();

	if (why)
		return diag_fail(diag, -ENOENT,
				 "data sets in object stores need libcurl (Debian: package "
				 "libcurl4; Fedora: libcurl), which cannot be used: %s",
				 why);
	return 0;
}

/* ---- answers ---- */

static void answer_reset(struct http_answer *answer)
{
	char *body = answer->body;

	*answer = (struct http_answer){
	    .last_modified = INT64_MIN, .total = UINT64_MAX, .from = UINT64_MAX, .body = body};
}

static void say_text(char *ret, size_t room, const char *value, size_t bytes)
{
	*ret = '\0';
	if (bytes >= room || memchr(value, '\0', bytes))
		return;
	memcpy(ret, value, bytes);
	ret[bytes] = '\0';
}

static void say_number(uint64_t *ret, const char *value)
{
	if (!base_parse_number(&value, UINT64_MAX - 1, ret) || (*value && *value != '/'))
		*ret = UINT64_MAX;
}

/* "bytes 0-99/1000"; of a 416 "bytes *" and the same. */
static void say_range(struct http_answer *answer, const char *value)
{
	const char *slash = strchr(value, '/'), *at = value + strlen("bytes ");
	uint64_t from;

	if (strncasecmp(value, "bytes ", strlen("bytes ")) != 0 || !slash)
		return;
	say_number(&answer->total, slash + 1);
	if (base_parse_number(&at, UINT64_MAX - 1, &from) && *at == '-')
		answer->from = from;
}

/* Seconds, or a date. */
static void say_wait(struct http_answer *answer, const char *value)
{
	const char *at = value;
	uint64_t seconds;

	if (base_parse_number(&at, MOST_WAIT_S, &seconds)) {
		seconds += *at == '.' && at[1 + strspn(at + 1, "0")]; /* "0.5" */
	} else {
		const time_t then = curl.getdate(value, NULL), now = time(NULL);

		seconds = *value >= '0' && *value <= '9' ? MOST_WAIT_S
			  : then > now                   ? (uint64_t)(then - now)
							 : 0;
	}
	answer->wait_ns = BASE_MIN(seconds, MOST_WAIT_S) * 1000000000;
}

/* The target of rel="next" in a list of '<target>; rel="next"', with commas between. */
static void say_link(struct http_answer *answer, const char *value)
{
	while ((value = strchr(value, '<'))) {
		const char *end = strchr(++value, '>'), *rest = end ? strchr(end, '<') : NULL;
		const char *next = end ? strstr(end, "rel=\"next\"") : NULL;

		if (!end)
			return;
		if (next && (!rest || next < rest)) {
			say_text(answer->next, sizeof(answer->next), value, (size_t)(end - value));
			answer->is_link_cut = !*answer->next;
			return;
		}
		value = end;
	}
}

static bool is_name(const char *line, size_t bytes, const char *name)
{
	return strlen(name) == bytes && strncasecmp(line, name, bytes) == 0;
}

static void say_header(struct http_answer *answer, const char *line, size_t name, const char *value)
{
	const size_t bytes = strlen(value);

	if (is_name(line, name, "etag")) {
		say_text(answer->etag, sizeof(answer->etag), value, bytes);
	} else if (is_name(line, name, "last-modified")) {
		const time_t at = curl.getdate(value, NULL);

		answer->last_modified = at < 0 ? INT64_MIN : (int64_t)at;
	} else if (is_name(line, name, "content-range")) {
		say_range(answer, value);
	} else if (is_name(line, name, "content-length")) {
		if (answer->total == UINT64_MAX && answer->from == UINT64_MAX)
			say_number(&answer->total, value);
	} else if (is_name(line, name, "x-amz-bucket-region")) {
		say_text(answer->region, sizeof(answer->region), value, bytes);
	} else if (is_name(line, name, "x-goog-generation") ||
		   is_name(line, name, "x-ms-version-id") ||
		   is_name(line, name, "x-amz-version-id")) {
		say_text(answer->version, sizeof(answer->version), value, bytes);
	} else if (is_name(line, name, "retry-after")) {
		say_wait(answer, value);
	} else if (is_name(line, name, "link")) {
		say_link(answer, value);
	}
}

/* A line of the head: of each answer, if redirections are followed, so that the last one stays. */
static size_t on_header(char *data, size_t one, size_t n, void *arg)
{
	struct exchange *exchange = arg;
	char line[HTTP_MOST_LINK + 1024], *colon;
	size_t size = BASE_MIN(one * n, sizeof(line) - 1);

	memcpy(line, data, size);
	while (size > 0 && strchr("\r\n \t", line[size - 1]))
		size--;
	line[size] = '\0';
	if (strncmp(line, "HTTP/", 5) == 0) {
		const char *status = strchr(line, ' ');

		answer_reset(&exchange->answer);
		exchange->answer.status = status ? strtol(status, NULL, 10) : 0;
		return one * n;
	}
	colon = strchr(line, ':');
	if (colon && one * n >= sizeof(line))
		exchange->answer.is_link_cut |= is_name(line, (size_t)(colon - line), "link");
	else if (colon)
		say_header(&exchange->answer, line, (size_t)(colon - line),
			   colon + 1 + strspn(colon + 1, " \t"));
	return one * n;
}

static bool keep_body(struct exchange *exchange, const char *data, size_t size)
{
	struct http_answer *answer = &exchange->answer;

	if (size > exchange->most - answer->body_bytes ||
	    !base_grow(&answer->body, &exchange->room, answer->body_bytes + size + 1, 1)) {
		exchange->is_too_long = true;
		return false;
	}
	memcpy(answer->body + answer->body_bytes, data, size);
	answer->body_bytes += size;
	answer->body[answer->body_bytes] = '\0';
	return true;
}

/* ---- what both kinds of exchange are ---- */

/* CURLOPT_PROTOCOLS_STR, since libcurl 7.85, and before it CURLOPT_PROTOCOLS with bits: the library that is found may be older
 * than its header, or newer. */
enum {
	HTTP_PROTOCOLS_STR = 10318,
	HTTP_REDIR_PROTOCOLS_STR = 10319,
	HTTP_PROTOCOLS = 181,
	HTTP_REDIR_PROTOCOLS = 182,
	HTTP_SAFE = 2,
	HTTP_BOTH = 3
};

static void set_certificates(CURL *easy)
{
	const char *file = base_variable("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE");
	const char *folder = base_variable("SSL_CERT_DIR");

	if (file)
		curl.easy_setopt(easy, CURLOPT_CAINFO, file);
	if (folder)
		curl.easy_setopt(easy, CURLOPT_CAPATH, folder);
}

static int exchange_init(struct exchange *exchange)
{
	CURL *easy = curl.easy_init();

	*exchange = (struct exchange){.easy = easy};
	if (!easy)
		return -ENOMEM;
	if (curl.easy_setopt(easy, (CURLoption)HTTP_PROTOCOLS_STR, "http,https") != CURLE_OK)
		curl.easy_setopt(easy, (CURLoption)HTTP_PROTOCOLS, (long)HTTP_BOTH);
	curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl.easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* "/./" is a part of a key */
	curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl.easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl.easy_setopt(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
	curl.easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
	curl.easy_setopt(easy, CURLOPT_USERAGENT, "oneaccess");
	curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->why);
	curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl.easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
	set_certificates(easy);
	return 0;
}

/* From https nobody is led into the clear. */
static void set_redirections(CURL *easy, const struct http_request *request)
{
	const bool is_safe = strncasecmp(request->url, "https:", strlen("https:")) == 0;

	curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->follows ? 1L : 0L);
	curl.easy_setopt(easy, CURLOPT_MAXREDIRS, MOST_REDIRECTIONS);
	if (curl.easy_setopt(easy, (CURLoption)HTTP_REDIR_PROTOCOLS_STR,
			     is_safe ? "https" : "http,https") != CURLE_OK)
		curl.easy_setopt(easy, (CURLoption)HTTP_REDIR_PROTOCOLS,
				 (long)(is_safe ? HTTP_SAFE : HTTP_BOTH));
}

/* What the request wants, and no more of the one before. */
static int exchange_begin(struct exchange *exchange, const struct http_request *request)
{
	CURL *easy = exchange->easy;
	const char *method = request->method;

	answer_reset(&exchange->answer);
	exchange->is_too_long = false;
	exchange->is_hasty = request->is_hasty;
	*exchange->why = '\0';
	curl.slist_free_all(exchange->headers);
	exchange->headers = NULL;
	for (size_t i = 0; i < request->n_headers; i++) {
		struct curl_slist *more = curl.slist_append(exchange->headers, request->header[i]);

		if (!more)
			return -ENOMEM;
		exchange->headers = more;
	}
	curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
	curl.easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	if (strcmp(method, "HEAD") == 0) {
		curl.easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (strcmp(method, "GET") != 0) {
		curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)request->body_bytes);
		if (curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS,
				     request->body ? request->body : "") != CURLE_OK)
			return -ENOMEM;
		if (strcmp(method, "POST") != 0)
			curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	}
	curl.easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
	set_redirections(easy, request);
	curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
			 request->is_hasty ? HASTY_MS : CONNECT_MS);
	curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, request->is_hasty ? HASTY_ANSWER_MS : 0L);
	curl.easy_setopt(easy, CURLOPT_NOPROXY, request->is_hasty ? "*" : NULL);
	return curl.easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK ? 0 : -ENOMEM;
}

/* Was it the way to the proxy, or did that refuse? The server was not reached then. */
static bool is_of_proxy(CURLcode code, const char *why)
{
	enum { HTTP_PROXY_HANDSHAKE = 97 }; /* CURLE_PROXY, since 7.73 */

	return code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
	       (int)code == HTTP_PROXY_HANDSHAKE || strstr(why, "CONNECT") ||
	       (code == CURLE_OPERATION_TIMEDOUT && strstr(why, "Connection timed out"));
}

/* Of the variables that name them, the one that counts. */
static const char *hint_of_certificates(void)
{
	if (base_variable("AWS_CA_BUNDLE"))
		return "the file in AWS_CA_BUNDLE has no certificate of who vouches for it";
	if (base_variable("CURL_CA_BUNDLE"))
		return "the file in CURL_CA_BUNDLE has no certificate of who vouches for it";
	if (base_variable("SSL_CERT_FILE"))
		return "the file in SSL_CERT_FILE has no certificate of who vouches for it";
	return "SSL_CERT_FILE names the certificate of who vouches for it";
}

/* What may be done about it. */
static const char *hint_of(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
		return "is its name right, and the network there? https_proxy names a proxy";
	case CURLE_SSL_CONNECT_ERROR:
		return "does it speak TLS? else its URL begins with http://";
	case CURLE_PEER_FAILED_VERIFICATION:
		return hint_of_certificates();
	default:
		return "";
	}
}

static const char *exchange_why(struct exchange *exchange, CURLcode code)
{
	const char *said = *exchange->why ? exchange->why : curl.easy_strerror(code);
	char proxy[112] = "", why[CURL_ERROR_SIZE];
	char *url = NULL;

	if (exchange->is_too_long)
		return "its answer is too long";
	if (code == CURLE_WRITE_ERROR)
		return "cut";
	if (!exchange->is_hasty && is_of_proxy(code, said) &&
	    curl.easy_getinfo(exchange->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url)
		http_proxy(url, proxy, sizeof(proxy));
	if (!*proxy && (exchange->is_hasty || !*hint_of(code)))
		return said;
	snprintf(why, sizeof(why), "%s", said);
	if (*proxy)
		snprintf(exchange->why, sizeof(exchange->why), "%s: %.140s", proxy, why);
	else
		snprintf(exchange->why, sizeof(exchange->why), "%.150s (%s)", why, hint_of(code));
	return exchange->why;
}

static void exchange_fini(struct exchange *exchange)
{
	if (exchange->easy)
		curl.easy_cleanup(exchange->easy);
	curl.slist_free_all(exchange->headers);
	http_answer_free(&exchange->answer);
}

static bool passes(CURLcode code, long status)
{
	switch (code) {
	case CURLE_OK:
		return http_passes(status);
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_SSL_CONNECT_ERROR:
		return true;
	default:
		return false;
	}
}

/* ---- one answer ---- */

int http_new(struct http **ret)
{
	struct http *http = malloc(sizeof(*http));

	if (!http || exchange_init(&http->exchange)) {
		free(http);
		return -ENOMEM;
	}
	*ret = http;
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	exchange_fini(&http->exchange);
	free(http);
}

static size_t on_answer(char *data, size_t one, size_t n, void *arg)
{
	return keep_body(arg, data, one * n) ? n : 0;
}

static void wait_ns(uint64_t ns)
{
	const struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&time, NULL);
}

int http_ask(struct http *http, const struct http_request *request, size_t most,
	     struct http_answer *ret, struct diag *diag)
{
	struct exchange *exchange = &http->exchange;
	const uint64_t began_ns = base_now_ns();
	CURLcode code;
	char host[256];

	for (unsigned tries = 1;; tries++) {
		http_answer_free(&exchange->answer);
		exchange->room = 0;
		exchange->most = most;
		code = CURLE_OUT_OF_MEMORY;
		if (exchange_begin(exchange, request))
			break;
		curl.easy_setopt(exchange->easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
		curl.easy_setopt(exchange->easy, CURLOPT_LOW_SPEED_TIME, SLOW_S);
		curl.easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_answer);
		curl.easy_setopt(exchange->easy, CURLOPT_WRITEDATA, exchange);
		code = curl.easy_perform(exchange->easy);
		if (request->is_hasty || !passes(code, exchange->answer.status))
			break;
		if (http_is_over(tries, code == CURLE_OK ? exchange->answer.status : 0,
				 base_now_ns() - began_ns))
			break;
		wait_ns(BASE_MAX(http_backoff_ns(tries), exchange->answer.wait_ns));
	}
	if (code == CURLE_OK && !keep_body(exchange, "", 0))
		code = CURLE_OUT_OF_MEMORY;
	if (code != CURLE_OK) {
		http_answer_free(&exchange->answer);
		return diag_fail(diag, code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO, "%s: %s",
				 http_host(request->url, host, sizeof(host)),
				 exchange_why(exchange, code));
	}
	if (exchange->answer.status == HTTP_PROXY_WANTS) {
		char proxy[112];

		http_answer_free(&exchange->answer);
		return diag_fail(diag, -EIO,
				 "%s: %s wants a user and a password: name it as "
				 "http://USER:PASSWORD@HOST:PORT",
				 http_host(request->url, host, sizeof(host)),
				 *http_proxy(request->url, proxy, sizeof(proxy)) ? proxy
										 : "a proxy");
	}
	*ret = exchange->answer;
	exchange->answer.body = NULL;
	return 0;
}

/* ---- many at once ---- */

/* fd is libcurl's, and may be closed already: that ends an epoll's interest in it by itself. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct http_many *many = arg;
	struct epoll_event event = {.data.fd = fd};

	(void)easy;
	(void)known;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(many->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	event.events =
	    (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	if (epoll_ctl(many->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0 && errno == ENOENT)
		epoll_ctl(many->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct http_many *many = arg;

	(void)multi;
	many->due_ns = ms < 0 ? UINT64_MAX : base_now_ns() + (uint64_t)ms * 1000000;
	return 0;
}

int http_many_new(struct http_many **ret)
{
	struct http_many *many = calloc(1, sizeof(*many));

	if (!many)
		return -ENOMEM;
	many->due_ns = UINT64_MAX;
	many->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	many->multi = curl.multi_init();
	if (many->epoll_fd < 0 || !many->multi) {
		http_many_free(many);
		return -ENOMEM;
	}
	curl.multi_setopt(many->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl.multi_setopt(many->multi, CURLMOPT_SOCKETDATA, many);
	curl.multi_setopt(many->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl.multi_setopt(many->multi, CURLMOPT_TIMERDATA, many);
	curl.multi_setopt(many->multi, CURLMOPT_MAXCONNECTS, MOST_CONNECTIONS);
	*ret = many;
	return 0;
}

void http_many_free(struct http_many *many)
{
	struct http_transfer *transfer;

	if (!many)
		return;
	while ((transfer = many->free)) {
		many->free = transfer->next;
		exchange_fini(&transfer->exchange);
		free(transfer);
	}
	if (many->multi)
		curl.multi_cleanup(many->multi);
	base_close(&many->epoll_fd);
	free(many);
}

int http_many_fd(const struct http_many *many)
{
	return many->epoll_fd;
}

uint64_t http_many_due_ns(const struct http_many *many)
{
	return many->due_ns;
}

static void find_landing(struct exchange *exchange)
{
	char *url = NULL;
	long times = 0;

	if (curl.easy_getinfo(exchange->easy, CURLINFO_REDIRECT_COUNT, &times) == CURLE_OK &&
	    times > 0 &&
	    curl.easy_getinfo(exchange->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK)
		exchange->answer.landed = url;
}

static size_t on_bytes(char *data, size_t one, size_t n, void *arg)
{
	struct http_transfer *transfer = arg;
	struct exchange *exchange = &transfer->exchange;
	const long status = exchange->answer.status;

	if (status != 200 && status != 206) {
		keep_body(exchange, data, one * n); /* too much of it is not read */
		exchange->is_too_long = false;
		return n;
	}
	if (!transfer->has_head) {
		find_landing(exchange);
		if (!transfer->sink->head(transfer->arg, &exchange->answer))
			return 0;
	}
	transfer->has_head = true;
	return transfer->sink->bytes(transfer->arg, data, one * n) ? n : 0;
}

static struct http_transfer *transfer_take(struct http_many *many)
{
	struct http_transfer *transfer = many->free;

	if (transfer) {
		many->free = transfer->next;
		return transfer;
	}
	transfer = calloc(1, sizeof(*transfer));
	if (!transfer)
		return NULL;
	if (exchange_init(&transfer->exchange)) {
		free(transfer);
		return NULL;
	}
	curl.easy_setopt(transfer->exchange.easy, CURLOPT_PRIVATE, transfer);
	curl.easy_setopt(transfer->exchange.easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl.easy_setopt(transfer->exchange.easy, CURLOPT_WRITEDATA, transfer);
	return transfer;
}

static void transfer_give(struct http_many *many, struct http_transfer *transfer)
{
	http_answer_free(&transfer->exchange.answer);
	transfer->exchange.room = 0;
	transfer->next = many->free;
	many->free = transfer;
}

int http_many_begin(struct http_many *many, const struct http_request *request,
		    const struct http_sink *sink, void *arg, struct http_transfer **ret)
{
	struct http_transfer *transfer = transfer_take(many);

	if (!transfer)
		return -ENOMEM;
	transfer->many = many;
	transfer->sink = sink;
	transfer->arg = arg;
	transfer->has_head = false;
	transfer->exchange.most = MOST_SAID;
	if (exchange_begin(&transfer->exchange, request) ||
	    curl.multi_add_handle(many->multi, transfer->exchange.easy) != CURLM_OK) {
		transfer_give(many, transfer);
		return -ENOMEM;
	}
	*ret = transfer;
	return 0;
}

void http_many_cut(struct http_many *many, struct http_transfer *transfer)
{
	curl.multi_remove_handle(many->multi, transfer->exchange.easy);
	transfer_give(many, transfer);
}

static void end(struct http_many *many, struct http_transfer *transfer, CURLcode code)
{
	const struct http_sink *sink = transfer->sink;
	struct http_answer *answer = &transfer->exchange.answer;
	const bool is_object = answer->status == 200 || answer->status == 206;
	char why[CURL_ERROR_SIZE];

	curl.multi_remove_handle(many->multi, transfer->exchange.easy);
	/* An empty one has its head, too. */
	if (code == CURLE_OK && is_object && !transfer->has_head &&
	    !sink->head(transfer->arg, answer))
		code = CURLE_WRITE_ERROR;
	if (code == CURLE_OK && !keep_body(&transfer->exchange, "", 0))
		code = CURLE_OUT_OF_MEMORY;
	snprintf(why, sizeof(why), "%s",
		 code == CURLE_OK ? "" : exchange_why(&transfer->exchange, code));
	sink->end(transfer->arg, answer, code == CURLE_OK ? NULL : why);
	transfer_give(many, transfer);
}

void http_many_turn(struct http_many *many)
{
	struct epoll_event event[64];
	const int n = epoll_wait(many->epoll_fd, event, BASE_ARRAY_LEN(event), 0);
	struct http_transfer *transfer;
	const CURLMsg *message;
	int running, left;

	for (int i = 0; i < n; i++) {
		const uint32_t events = event[i].events;

		curl.multi_socket_action(
		    many->multi, event[i].data.fd,
		    (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			(events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			(events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
		    &running);
	}
	if (many->due_ns <= base_now_ns()) {
		many->due_ns = UINT64_MAX;
		curl.multi_socket_action(many->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	while ((message = curl.multi_info_read(many->multi, &left))) {
		const CURLcode code = message->data.result;

		transfer = NULL;
		if (message->msg == CURLMSG_DONE &&
		    curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer) ==
			CURLE_OK &&
		    transfer)
			end(many, transfer, code);
	}
}
