/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who reads an account of Azure Blob Storage: what the environment has for it, and tokens of Microsoft Entra ID. */

#include "bucket/http.h"

enum azure_login_kind {
	AZURE_LOGIN_KEY,       /* the account's: Shared Key */
	AZURE_LOGIN_SAS,       /* a shared access signature: part of each URL */
	AZURE_LOGIN_FEDERATED, /* a token for another's token, which is in a file: workload identity */
	AZURE_LOGIN_SECRET,    /* a token for an application's secret */
	AZURE_LOGIN_MACHINE, /* a token for who runs here: managed identity */
};

struct azure_login { /* does not change once it is open */
	enum azure_login_kind kind;
	char *who;      /* for messages: "AZURE_STORAGE_KEY" */
	char *endpoint; /* of a connection string; NULL */
	uint8_t *key;
	size_t key_bytes;
	char *sas; /* without "?" before it */
	char *token_uri;
	char *client,
	    *secret; /* secret: of the application; or the path of the file of FEDERATED */
};

/* Reads the environment, asks nobody. 0; -EINVAL with diag; -ENOMEM. */
int azure_login_open(const char *account, struct azure_login **ret, struct diag *diag);
void azure_login_free(struct azure_login *login);
bool azure_login_has_token(const struct azure_login *login);
/* Of one that has: the caller wipes the token, which ends in so many seconds. 0; -EACCES with diag, which says what was looked
 * for; -EIO, -ECANCELED with diag; -ENOMEM. */
int azure_login_ask(const void *login, struct http *http, char **ret_token, unsigned *ret_seconds,
		    struct diag *diag);
