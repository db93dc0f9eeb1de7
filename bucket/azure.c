/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Azure Blob Storage: az://ACCOUNT/CONTAINER/prefix, and as Hadoop has it
 * abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/prefix (or abfs://), which is read as blobs. The tag is of ETag and
 * Last-Modified. Folders of a hierarchical namespace are passed over in lists.
 *
 *	option             what
 *	anonymous=1        no credentials, for public containers
 *	endpoint=URL       before a connection string's; else https://ACCOUNT.blob.core.windows.net. Azurite's is
 *	                   http://127.0.0.1:10000/devstoreaccount1
 *
 *	variable, the first that is set
 *	AZURE_STORAGE_CONNECTION_STRING
 *	                   AccountName, AccountKey or SharedAccessSignature, BlobEndpoint, EndpointSuffix;
 *	                   UseDevelopmentStorage=true is Azurite
 *	AZURE_STORAGE_KEY, AZURE_STORAGE_ACCOUNT_KEY
 *	                   the account's key
 *	AZURE_STORAGE_SAS_TOKEN
 *	                   a shared access signature; it may read and list (sp=rl)
 *	AZURE_FEDERATED_TOKEN_FILE
 *	                   workload identity, with AZURE_CLIENT_ID and AZURE_TENANT_ID
 *	AZURE_CLIENT_SECRET
 *	                   an application's, with the same two; AZURE_AUTHORITY_HOST: not https://login.microsoftonline.com
 *	(none)             the machine's managed identity; AZURE_CLIENT_ID says which, where it has several
 *
 *	AZURE_STORAGE_ACCOUNT
 *	                   of which the key or the SAS token is; another than the URL's is refused
 *
 * All but the ticket stays as open() made it.
 */

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "bucket/azure_list.h"
#include "bucket/azure_login.h"
#include "bucket/azure_sign.h"
#include "bucket/bearer.h"
#include "bucket/provider.h"
#include "bucket/ticket.h"

#define AZURE_VERSION "2020-10-02" /* of the protocol */

struct azure {
	char *account, *container;
	char *head; /* "CONTAINER/", where names begin with it; else "" */
	char *endpoint;
	struct azure_login *login; /* NULL: nobody */
	struct ticket ticket;
};

static void azure_close(void *self)
{
	struct azure *azure = self;

	if (!azure)
		return;
	ticket_fini(&azure->ticket);
	azure_login_free(azure->login);
	free(azure->endpoint);
	free(azure->head);
	free(azure->container);
	free(azure->account);
	free(azure);
}

static void azure_closep(struct azure **azure)
{
	azure_close(*azure);
}

/* ---- where ---- */

static bool azure_is_name(const char *name, const char *also)
{
	for (const char *at = name; *at; at++)
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) &&
		    !strchr(also, *at))
			return false;
	return *name && strlen(name) <= 63;
}

/* CONTAINER@ACCOUNT.dfs.core.windows.net, or CONTAINER@ACCOUNT. */
static int azure_set_hadoop(struct azure *azure, const struct bucket_url *url)
{
	const size_t container = strcspn(url->place, "@");
	const char *host = url->place + container + (url->place[container] == '@');
	const size_t account = strcspn(host, ".");
	const char *suffix = host + account;

	azure->container = strndup(url->place, url->place[container] ? container : 0);
	azure->account = strndup(host, account);
	azure->head = strdup("");
	if (strncmp(suffix, ".dfs.", 5) == 0 || strncmp(suffix, ".blob.", 6) == 0)
		suffix = strchr(suffix + 1, '.');
	else
		suffix = ".core.windows.net";
	azure->endpoint = base_format("https://%.*s.blob%s", (int)account, host, suffix);
	return azure->container && azure->account && azure->head && azure->endpoint ? 0 : -ENOMEM;
}

static int azure_set_az(struct azure *azure, const struct bucket_url *url)
{
	azure->account = strdup(url->place);
	azure->container = strndup(url->path, strcspn(url->path, "/"));
	azure->head = base_format("%s/", azure->container ? azure->container : "");
	azure->endpoint = base_format("https://%s.blob.core.windows.net", url->place);
	return azure->account && azure->container && azure->head && azure->endpoint ? 0 : -ENOMEM;
}

static int azure_set_place(struct azure *azure, const struct bucket_url *url, struct diag *diag)
{
	const bool is_az = strcmp(url->ops->scheme, "az") == 0;
	const int r = is_az ? azure_set_az(azure, url) : azure_set_hadoop(azure, url);

	if (r < 0)
		return r;
	if (azure_is_name(azure->account, "") && azure_is_name(azure->container, "-$"))
		return 0;
	return diag_fail(
	    diag, -EINVAL,
	    "%s://%s/%s: containers of Azure are az://ACCOUNT/CONTAINER/path or "
	    "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/path, in small letters and "
	    "digits",
	    url->ops->scheme, BASE_QUOTED(url->place, 200), BASE_QUOTED(url->path, 200));
}

static int azure_set_endpoint(struct azure *azure, const char *named)
{
	if (!named)
		return 0;
	free(azure->endpoint);
	azure->endpoint = bucket_bare(named);
	return azure->endpoint ? 0 : -ENOMEM;
}

/* ---- who ---- */

static int azure_log_in(struct azure *azure, const char *endpoint, struct http *http,
			struct diag *diag)
{
	int r = azure_login_open(azure->account, &azure->login, diag);

	if (r == 0 && !endpoint)
		r = azure_set_endpoint(azure, azure->login->endpoint);
	if (r < 0)
		return r;
	if (azure->login->kind != AZURE_LOGIN_KEY && !bearer_may_go(azure->endpoint))
		return diag_fail(
		    diag, -EINVAL,
		    "to %s the token of %s would go in the clear: name an https:// URL as "
		    "the endpoint, or say anonymous=1",
		    BASE_QUOTED(azure->endpoint, 200), azure->login->who);
	return azure_login_has_token(azure->login)
		   ? ticket_open(&azure->ticket, azure_login_ask, azure->login, http, diag)
		   : 0;
}

static int azure_open(const struct bucket_url *url, const struct bucket_options *options,
		      struct http *http, void **ret, struct diag *diag)
{
	_cleanup_(azure_closep) struct azure *azure = calloc(1, sizeof(*azure));
	const char *endpoint = bucket_option(options, "endpoint");
	int r;

	if (!azure)
		return -ENOMEM;
	ticket_init(&azure->ticket);
	r = azure_set_place(azure, url, diag);
	if (r == 0)
		r = azure_set_endpoint(azure, endpoint);
	if (r == 0 && !bucket_is_anonymous(options))
		r = azure_log_in(azure, endpoint, http, diag);
	if (r == 0)
		*ret = base_take_ptr(azure);
	return r;
}

static unsigned azure_renew(void *self, struct http *http, struct diag *diag)
{
	struct azure *azure = self;

	return ticket_renew(&azure->ticket, http, diag);
}

/* The signature stands in the URL, once. */
static int azure_add_sas(struct http_request *request, const char *sas)
{
	_cleanup_free_ char *url = NULL;

	if (strstr(request->url, sas))
		return 0;
	url = base_take_ptr(request->url);
	return http_request_url(request, "%s%c%s", url, strchr(url, '?') ? '&' : '?', sas);
}

static int azure_sign_request(void *self, struct http_request *request)
{
	struct azure *azure = self;
	const struct azure_login *login = azure->login;
	const int r = bearer_header(request, "x-ms-version", AZURE_VERSION);

	if (r < 0 || !login)
		return r;
	switch (login->kind) {
	case AZURE_LOGIN_KEY:
		return azure_sign(request, azure->account, login->key, login->key_bytes,
				  time(NULL));
	case AZURE_LOGIN_SAS:
		return azure_add_sas(request, login->sas);
	default:
		return ticket_authorize(&azure->ticket, request);
	}
}

/* ---- lists and objects ---- */

static int azure_list(void *self, const char *prefix, const char *cursor, struct http_request *ret)
{
	const struct azure *azure = self;
	_cleanup_free_ char *begins = http_escape(bucket_behind(prefix, azure->head), "");
	_cleanup_free_ char *marker = http_escape(cursor ? cursor : "", "");

	if (!begins || !marker)
		return -ENOMEM;
	ret->method = "GET";
	return http_request_url(
	    ret, "%s/%s?restype=container&comp=list&maxresults=5000&prefix=%s%s%s", azure->endpoint,
	    azure->container, begins, cursor ? "&marker=" : "", marker);
}

static int azure_listed(void *self, const struct http_answer *answer,
			const struct provider_sink *sink, char **ret_cursor, struct diag *diag)
{
	const struct azure *azure = self;
	struct diag why = {.text = ""};
	const int r =
	    azure_list_read(answer->body, answer->body_bytes, azure->head, sink, ret_cursor, &why);

	if (r == -EBADMSG)
		return diag_fail(diag, r, "%s: %s", BASE_QUOTED(azure->endpoint, 200), why.text);
	return r;
}

static int azure_request(void *self, const char *method, const char *name, struct http_request *ret)
{
	const struct azure *azure = self;
	_cleanup_free_ char *escaped = http_escape(bucket_behind(name, azure->head), "/");

	if (!escaped)
		return -ENOMEM;
	ret->method = method;
	return http_request_url(ret, "%s/%s/%s", azure->endpoint, azure->container, escaped);
}

static const char *azure_mend(const struct azure *azure, long status)
{
	static const char *const mend[] = {
	    [AZURE_LOGIN_KEY] = "is it the key of this account, and this machine's clock right?",
	    [AZURE_LOGIN_SAS] = "has it ended, and may it read and list (sp=rl) this container?",
	    [AZURE_LOGIN_FEDERATED] = "it wants the role Storage Blob Data Reader",
	    [AZURE_LOGIN_SECRET] = "it wants the role Storage Blob Data Reader",
	    [AZURE_LOGIN_MACHINE] = "it wants the role Storage Blob Data Reader",
	};

	if (status == 404 && azure->login)
		return "there is no such container or blob";
	if (status != 401 && status != 403 && status != 404 && status != 409)
		return "it does not give it";
	return azure->login ? mend[azure->login->kind]
			    : "there is no such container, or it is not public: do without "
			      "anonymous=1, and set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or "
			      "another of the variables";
}

static int azure_refused(void *self, struct http *http, const struct http_answer *answer,
			 const char *name, struct diag *ret_diag)
{
	struct azure *azure = self;
	char answered[BEARER_ANSWERED];

	if (answer->status == 401 && azure->login && azure_login_has_token(azure->login))
		return ticket_refused(&azure->ticket, http, ret_diag);
	diag_set(ret_diag, "az://%s/%s/%s: %s answers %s to %s: %s", azure->account,
		 azure->container, BASE_QUOTED(name ? bucket_behind(name, azure->head) : "", 160),
		 BASE_QUOTED(azure->endpoint, 120), bearer_answered(answer, answered),
		 azure->login ? azure->login->who : "nobody", azure_mend(azure, answer->status));
	return 0;
}

#define AZURE_OPS(name)                                                                       \
	{                                                                                     \
		.scheme = name, .tag = PROVIDER_TAG_ETAG, .options = "anonymous\0endpoint\0", \
		.open = azure_open, .close = azure_close, .list = azure_list,                 \
		.listed = azure_listed, .request = azure_request, .sign = azure_sign_request, \
		.refused = azure_refused, .renew = azure_renew,                               \
	}
const struct provider_ops provider_az = AZURE_OPS("az");
const struct provider_ops provider_abfs = AZURE_OPS("abfs");
const struct provider_ops provider_abfss = AZURE_OPS("abfss");
