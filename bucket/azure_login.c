/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In this order, the first that is there: a connection string, the account's key, a SAS token, a federated token (workload
 * identity), an application's secret; else the machine's managed identity. What is of another account than the URL's is
 * refused, as it would be by the server, in words that say less.
 */

#include "bucket/azure_login.h"

#include <stdio.h>
#include <strings.h>

#include "base/base64.h"
#include "bucket/bearer.h"
#include "bucket/provider.h"
#include "bucket/ticket.h"

#define AZURE_LOGIN_MACHINE_URL                            \
	"http://169.254.169.254/metadata/identity/oauth2/" \
	"token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F"
/* Of Azurite and Microsoft's other emulators: everybody knows it. */
#define AZURE_LOGIN_TRIAL "devstoreaccount1"
#define AZURE_LOGIN_TRIAL_KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define AZURE_LOGIN_TRIAL_URL "http://127.0.0.1:10000/" AZURE_LOGIN_TRIAL

void azure_login_free(struct azure_login *login)
{
	if (!login)
		return;
	if (login->key)
		explicit_bzero(login->key, login->key_bytes);
	free(login->key);
	base_wipe(&login->sas);
	base_wipe(&login->secret);
	free(login->client);
	free(login->token_uri);
	free(login->endpoint);
	free(login->who);
	free(login);
}

static void azure_login_freep(struct azure_login **login)
{
	azure_login_free(*login);
}

bool azure_login_has_token(const struct azure_login *login)
{
	return login->kind >= AZURE_LOGIN_FEDERATED;
}

/* ---- keys and signatures ---- */

static int azure_login_key(struct azure_login *login, const char *text, struct diag *diag)
{
	const int r = base64_read(text, strlen(text), &login->key, &login->key_bytes);

	login->kind = AZURE_LOGIN_KEY;
	if (r == -EINVAL || (r == 0 && login->key_bytes == 0))
		return diag_fail(diag, -EINVAL,
				 "%s is no key of a storage account: they are in base64 and end in "
				 "\"==\"",
				 login->who);
	return r;
}

static int azure_login_sas(struct azure_login *login, const char *text, struct diag *diag)
{
	login->kind = AZURE_LOGIN_SAS;
	text += *text == '?';
	if (!bearer_is_good(text) || !strstr(text, "sig=") || strpbrk(text, " #"))
		return diag_fail(diag, -EINVAL,
				 "%s is no SAS token: one is \"sv=...&sig=...\", and no URL",
				 login->who);
	login->sas = strdup(text);
	return login->sas ? 0 : -ENOMEM;
}

static int azure_login_other(const char *who, const char *account, const char *other,
			     struct diag *diag)
{
	return diag_fail(
	    diag, -EINVAL,
	    "%s is of the storage account \"%s\", and the URL names \"%s\": set it for "
	    "that one, unset it, or say anonymous=1",
	    who, BASE_QUOTED(other, 64), BASE_QUOTED(account, 64));
}

/* ---- connection strings ---- */

/* The value of a part; the caller wipes. *ret is NULL where there is none. 0, -ENOMEM. */
static int azure_login_part(const char *text, const char *key, char **ret)
{
	const size_t size = strlen(key);

	*ret = NULL;
	while (*text) {
		const size_t part = strcspn(text, ";");

		if (part > size + 1 && strncasecmp(text, key, size) == 0 && text[size] == '=') {
			*ret = strndup(text + size + 1, part - size - 1);
			return *ret ? 0 : -ENOMEM;
		}
		text += part + (text[part] == ';');
	}
	return 0;
}

static int azure_login_place(struct azure_login *login, const char *text, const char *account)
{
	_cleanup_free_ char *suffix = NULL, *protocol = NULL;
	int r = azure_login_part(text, "BlobEndpoint", &login->endpoint);

	if (r == 0)
		r = azure_login_part(text, "EndpointSuffix", &suffix);
	if (r == 0)
		r = azure_login_part(text, "DefaultEndpointsProtocol", &protocol);
	if (r < 0 || login->endpoint || !suffix)
		return r;
	login->endpoint =
	    base_format("%s://%s.blob.%s", protocol ? protocol : "https", account, suffix);
	return login->endpoint ? 0 : -ENOMEM;
}

static int azure_login_string(struct azure_login *login, const char *text, const char *account,
			      struct diag *diag)
{
	_cleanup_free_ char *name = NULL;
	_cleanup_wipe_ char *key = NULL, *sas = NULL;
	int r = azure_login_part(text, "AccountName", &name);

	if (r == 0)
		r = azure_login_part(text, "AccountKey", &key);
	if (r == 0)
		r = azure_login_part(text, "SharedAccessSignature", &sas);
	if (r == 0 && name && strcmp(name, account) != 0)
		return azure_login_other(login->who, account, name, diag);
	if (r == 0)
		r = azure_login_place(login, text, account);
	if (r < 0)
		return r;
	if (key)
		return azure_login_key(login, key, diag);
	if (sas)
		return azure_login_sas(login, sas, diag);
	return diag_fail(diag, -EINVAL, "%s has neither an AccountKey nor a SharedAccessSignature",
			 login->who);
}

static int azure_login_trial(struct azure_login *login, const char *account, struct diag *diag)
{
	if (strcmp(account, AZURE_LOGIN_TRIAL) != 0)
		return azure_login_other(login->who, account, AZURE_LOGIN_TRIAL, diag);
	login->endpoint = strdup(AZURE_LOGIN_TRIAL_URL);
	return login->endpoint ? azure_login_key(login, AZURE_LOGIN_TRIAL_KEY, diag) : -ENOMEM;
}

/* ---- Microsoft Entra ID ---- */

static int azure_login_entra(struct azure_login *login, enum azure_login_kind kind,
			     const char *secret, struct diag *diag)
{
	const char *client = base_variable("AZURE_CLIENT_ID");
	const char *tenant = base_variable("AZURE_TENANT_ID");
	const char *host = base_variable("AZURE_AUTHORITY_HOST");
	_cleanup_free_ char *escaped = http_escape(tenant ? tenant : "", ""), *bare = NULL;

	login->kind = kind;
	if (!client || !tenant)
		return diag_fail(
		    diag, -EINVAL,
		    "%s is set, but not %s: both AZURE_CLIENT_ID and AZURE_TENANT_ID are "
		    "wanted with it",
		    login->who, client ? "AZURE_TENANT_ID" : "AZURE_CLIENT_ID");
	host = host ? host : "https://login.microsoftonline.com";
	if (!bearer_may_go(host))
		return diag_fail(
		    diag, -EINVAL,
		    "AZURE_AUTHORITY_HOST is no https:// URL, so no secret goes there");
	bare = bucket_bare(host);
	login->client = strdup(client);
	login->secret = strdup(secret);
	if (escaped && bare)
		login->token_uri = base_format("%s/%s/oauth2/v2.0/token", bare, escaped);
	return login->client && login->secret && login->token_uri ? 0 : -ENOMEM;
}

static int azure_login_machine(struct azure_login *login)
{
	const char *client = base_variable("AZURE_CLIENT_ID");
	_cleanup_free_ char *escaped = http_escape(client ? client : "", "");

	login->kind = AZURE_LOGIN_MACHINE;
	if (escaped)
		login->token_uri = base_format("%s%s%s", AZURE_LOGIN_MACHINE_URL,
					       client ? "&client_id=" : "", escaped);
	return login->token_uri ? 0 : -ENOMEM;
}

/* ---- which ---- */

/* A variable of an account: AZURE_STORAGE_ACCOUNT, if it is set, says which. */
static int azure_login_of(struct azure_login *login, const char *account, const char *value,
			  struct diag *diag)
{
	const char *other = base_variable("AZURE_STORAGE_ACCOUNT");

	if (other && strcmp(other, account) != 0)
		return azure_login_other(login->who, account, other, diag);
	return strcmp(login->who, "AZURE_STORAGE_SAS_TOKEN") == 0
		   ? azure_login_sas(login, value, diag)
		   : azure_login_key(login, value, diag);
}

static int azure_login_find(struct azure_login *login, const char *account, const char *value,
			    struct diag *diag)
{
	if (strcmp(login->who, "AZURE_STORAGE_CONNECTION_STRING") == 0)
		return strcasestr(value, "UseDevelopmentStorage=true")
			   ? azure_login_trial(login, account, diag)
			   : azure_login_string(login, value, account, diag);
	if (strncmp(login->who, "AZURE_STORAGE_", strlen("AZURE_STORAGE_")) == 0)
		return azure_login_of(login, account, value, diag);
	if (strcmp(login->who, "AZURE_FEDERATED_TOKEN_FILE") == 0)
		return azure_login_entra(login, AZURE_LOGIN_FEDERATED, value, diag);
	if (strcmp(login->who, "AZURE_CLIENT_SECRET") == 0)
		return azure_login_entra(login, AZURE_LOGIN_SECRET, value, diag);
	return azure_login_machine(login);
}

int azure_login_open(const char *account, struct azure_login **ret, struct diag *diag)
{
	static const char *const variable[] = {
	    "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY",
	    "AZURE_STORAGE_ACCOUNT_KEY",       "AZURE_STORAGE_SAS_TOKEN",
	    "AZURE_FEDERATED_TOKEN_FILE",      "AZURE_CLIENT_SECRET"};
	_cleanup_(azure_login_freep) struct azure_login *login = calloc(1, sizeof(*login));
	const char *name = "this machine's managed identity", *value = NULL;
	int r;

	if (!login)
		return -ENOMEM;
	for (size_t i = 0; i < BASE_ARRAY_LEN(variable) && !value; i++) {
		value = base_variable(variable[i]);
		name = value ? variable[i] : name;
	}
	login->who = strdup(name);
	r = login->who ? azure_login_find(login, account, value, diag) : -ENOMEM;
	if (r == 0)
		*ret = base_take_ptr(login);
	return r;
}

/* ---- tokens ---- */

static int azure_login_body(const struct azure_login *login, char **ret, struct diag *diag)
{
	const bool is_federated = login->kind == AZURE_LOGIN_FEDERATED;
	_cleanup_wipe_ char *secret = NULL, *escaped = NULL;
	_cleanup_free_ char *client = http_escape(login->client, "");
	int r;

	if (is_federated) { /* the file is written anew each hour */
		r = bearer_read(login->secret, "the token of AZURE_FEDERATED_TOKEN_FILE", &secret,
				diag);
		if (r < 0)
			return r == -ENOMEM ? r : -EACCES;
	}
	escaped = http_escape(is_federated ? secret : login->secret, "");
	if (!client || !escaped ||
	    asprintf(ret,
		     "grant_type=client_credentials&client_id=%s&scope=https%%3A%%2F%%2F"
		     "storage.azure.com%%2F.default&%s%s",
		     client,
		     is_federated ? "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-"
				    "assertion-type%3Ajwt-bearer&client_assertion="
				  : "client_secret=",
		     escaped) < 0)
		return -ENOMEM;
	return 0;
}

static int azure_login_request(const struct azure_login *login, struct http_request *request,
			       struct diag *diag)
{
	char *body = NULL;
	int r = http_request_url(request, "%s", login->token_uri);

	if (r < 0)
		return r;
	if (login->kind == AZURE_LOGIN_MACHINE) {
		request->method = "GET";
		request->is_hasty = true;
		return http_request_header(request, "Metadata: true");
	}
	r = azure_login_body(login, &body, diag);
	return r < 0 ? r : http_request_form(request, body);
}

static int azure_login_none(struct diag *diag)
{
	return diag_fail(
	    diag, -EACCES,
	    "no credentials for Azure Blob Storage: none of AZURE_STORAGE_CONNECTION_STRING, "
	    "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_FEDERATED_TOKEN_FILE and "
	    "AZURE_CLIENT_SECRET is set, and no managed identity gives a token at 169.254.169.254: "
	    "set one of them, or say anonymous=1 for a public container");
}

int azure_login_ask(const void *of, struct http *http, char **ret_token, unsigned *ret_seconds,
		    struct diag *diag)
{
	const struct azure_login *login = of;
	_cleanup_(http_request_free) struct http_request request = {.method = NULL};
	int r = azure_login_request(login, &request, diag);

	if (r == 0)
		r = ticket_ask(&request, http, login->who, "", ret_token, ret_seconds, diag);
	return r == TICKET_E_NONE ? azure_login_none(diag) : r;
}
