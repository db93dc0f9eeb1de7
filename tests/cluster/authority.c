/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/cluster/authority.h"

#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_FILES 32
#define DAY_S 86400L

struct authority {
	char folder[64];
	char *paths[MOST_FILES];
	size_t n;
	EVP_PKEY *key;
	X509 *certificate;
	const char *path;
	long serial;
};

static FILE *file_new(struct authority *authority, const char **ret_path)
{
	FILE *file;

	ck_assert_uint_lt(authority->n, MOST_FILES);
	ck_assert_int_gt(asprintf(&authority->paths[authority->n], "%s/%zu.pem", authority->folder,
				  authority->n),
			 0);
	*ret_path = authority->paths[authority->n++];
	file = fopen(*ret_path, "w");
	ck_assert_ptr_nonnull(file);
	return file;
}

static void extend(X509 *certificate, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	ck_assert_ptr_nonnull(extension);
	ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

/* Not signed yet. */
static X509 *certificate_new(struct authority *authority, EVP_PKEY *key, const char *name,
			     long valid_from_s)
{
	X509 *certificate = X509_new();
	X509_NAME *subject = X509_get_subject_name(certificate);

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++authority->serial);
	X509_gmtime_adj(X509_getm_notBefore(certificate), valid_from_s);
	X509_gmtime_adj(X509_getm_notAfter(certificate), valid_from_s + DAY_S);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
				   0);
	return certificate;
}

static const char *write_certificate(struct authority *authority, X509 *certificate)
{
	const char *path;
	FILE *file = file_new(authority, &path);

	ck_assert_int_eq(PEM_write_X509(file, certificate), 1);
	ck_assert_int_eq(fclose(file), 0);
	return path;
}

struct authority *authority_new(void)
{
	struct authority *authority = calloc(1, sizeof(*authority));

	strcpy(authority->folder, "/tmp/oneaccess-authority-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(authority->folder));
	authority->key = EVP_EC_gen("P-256");
	authority->certificate =
	    certificate_new(authority, authority->key, "authority", -DAY_S / 2);
	X509_set_issuer_name(authority->certificate, X509_get_subject_name(authority->certificate));
	extend(authority->certificate, NID_basic_constraints, "critical,CA:TRUE");
	ck_assert_int_gt(X509_sign(authority->certificate, authority->key, EVP_sha256()), 0);
	authority->path = write_certificate(authority, authority->certificate);
	return authority;
}

void authority_free(struct authority *authority)
{
	for (size_t i = 0; i < authority->n; i++) {
		unlink(authority->paths[i]);
		free(authority->paths[i]);
	}
	rmdir(authority->folder);
	X509_free(authority->certificate);
	EVP_PKEY_free(authority->key);
	free(authority);
}

struct authority_files authority_issue(struct authority *authority, const char *node,
				       long valid_from_s)
{
	struct authority_files files = {.path = {NULL, NULL, authority->path}};
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = certificate_new(authority, key, "a node", valid_from_s);
	char name[128];
	FILE *file;

	snprintf(name, sizeof(name), "DNS:%s", node);
	extend(certificate, NID_subject_alt_name, name);
	X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate));
	ck_assert_int_gt(X509_sign(certificate, authority->key, EVP_sha256()), 0);
	files.path[0] = write_certificate(authority, certificate);
	file = file_new(authority, &files.path[1]);
	ck_assert_int_eq(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
	ck_assert_int_eq(fclose(file), 0);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return files;
}
