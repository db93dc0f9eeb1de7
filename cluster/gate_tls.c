/* SPDX-License-Identifier: Apache-2.0 */

/*
 * OpenSSL, tied down to what two gates need: TLS 1.3 alone, one cipher, ephemeral keys always (so that who learns the
 * cluster's key later reads nothing of before), no tickets, no early data, no second handshake.
 *
 * By a key: it is an external PSK of RFC 8446 under one name for all clusters. Which cluster it is, is said inside, so
 * that two clusters with one key are told so in words. A caller that was shown a certificate in the place of the
 * key trusts no authority, and ends; that the key was used is asked once more behind the handshake.
 *
 * By certificates: both sides show one; it is checked against the cluster's authority alone, and the node's name against
 * its subject's alternative names, by who called gate_tls_is_of().
 *
 * OpenSSL reads a record's head and then the record (read_ahead is off), so what lies behind the last record stays in the
 * socket for who gets it. SIGPIPE is ignored by the program.
 */

#include "cluster/gate_tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/hash.h"

#define IDENTITY "oneaccess"
#define LABEL "EXPORTER-oneaccess-carrier"
#define CIPHER "TLS_AES_128_GCM_SHA256"

struct gate_tls_way {
	SSL_CTX *ctx;
	bool by_key;
	struct hash_id key; /* of the file's bytes */
};

struct gate_tls {
	SSL *ssl;
	bool by_key;
};

/* ---- the key ---- */

static SSL_SESSION *session_of(SSL *ssl)
{
	static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
	const struct gate_tls_way *way = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher &&
	    SSL_SESSION_set1_master_key(session, way->key.bytes, sizeof(way->key.bytes)) &&
	    SSL_SESSION_set_cipher(session, cipher) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int on_caller_needs_key(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_id,
			       size_t *ret_size, SSL_SESSION **ret)
{
	(void)digest; /* the one cipher's */
	*ret_id = (const unsigned char *)IDENTITY;
	*ret_size = sizeof(IDENTITY) - 1;
	*ret = session_of(ssl);
	return *ret != NULL;
}

static int on_key_is_named(SSL *ssl, const unsigned char *id, size_t size, SSL_SESSION **ret)
{
	*ret = NULL;
	if (size != sizeof(IDENTITY) - 1 || memcmp(id, IDENTITY, size) != 0)
		return 1; /* not found, which ends the handshake: there is no certificate */
	*ret = session_of(ssl);
	return *ret != NULL;
}

/* ---- ways ---- */

static void tie_down(SSL_CTX *ctx)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
				     SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(ctx, 0);
	SSL_CTX_set_max_early_data(ctx, 0);
	SSL_CTX_set_quiet_shutdown(ctx, 1);
	SSL_CTX_set_max_cert_list(ctx, GATE_TLS_MOST_FILE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static int way_new(struct gate_tls_way **ret)
{
	struct gate_tls_way *way = calloc(1, sizeof(*way));

	if (way)
		way->ctx = SSL_CTX_new(TLS_method());
	if (!way || !way->ctx || !SSL_CTX_set_min_proto_version(way->ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(way->ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(way->ctx, CIPHER) || !SSL_CTX_set_num_tickets(way->ctx, 0)) {
		gate_tls_way_free(way);
		return -ENOMEM;
	}
	tie_down(way->ctx);
	SSL_CTX_set_app_data(way->ctx, way);
	*ret = way;
	return 0;
}

void gate_tls_way_free(struct gate_tls_way *way)
{
	if (!way)
		return;
	SSL_CTX_free(way->ctx);
	OPENSSL_cleanse(&way->key, sizeof(way->key));
	free(way);
}

int gate_tls_way_of_key(struct gate_tls_file key, struct gate_tls_way **ret, struct diag *diag)
{
	struct gate_tls_way *way;

	if (key.size < GATE_TLS_LEAST_KEY || key.size > GATE_TLS_MOST_FILE)
		return diag_fail(
		    diag, -EINVAL,
		    "the cluster's key file has %zu bytes and must have %d to %d: make one "
		    "with `openssl rand -hex 32`, and give each node the same",
		    key.size, GATE_TLS_LEAST_KEY, GATE_TLS_MOST_FILE);
	if (way_new(&way))
		return diag_fail(diag, -ENOMEM, "TLS 1.3 with %s cannot be set up: %s", CIPHER,
				 ERR_reason_error_string(ERR_get_error()));
	way->by_key = true;
	hash_of(key.data, key.size, &way->key);
	SSL_CTX_set_psk_use_session_callback(way->ctx, on_caller_needs_key);
	SSL_CTX_set_psk_find_session_callback(way->ctx, on_key_is_named);
	*ret = way;
	return 0;
}

static BIO *memory_of(struct gate_tls_file file)
{
	return BIO_new_mem_buf(file.data, (int)BASE_MIN(file.size, (size_t)GATE_TLS_MOST_FILE));
}

/* The node's own, and what is between it and the authority. */
static bool use_chain(SSL_CTX *ctx, struct gate_tls_file file)
{
	BIO *bio = memory_of(file);
	X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	bool is_good = certificate && SSL_CTX_use_certificate(ctx, certificate) == 1;

	while (is_good) {
		X509 *next = PEM_read_bio_X509(bio, NULL, NULL, NULL);

		if (!next)
			break;
		is_good = SSL_CTX_add0_chain_cert(ctx, next) == 1;
		if (!is_good)
			X509_free(next);
	}
	X509_free(certificate);
	BIO_free(bio);
	return is_good;
}

static bool use_key(SSL_CTX *ctx, struct gate_tls_file file)
{
	BIO *bio = memory_of(file);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;
	bool is_good = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;

	EVP_PKEY_free(key);
	BIO_free(bio);
	return is_good;
}

static bool use_authority(SSL_CTX *ctx, struct gate_tls_file file)
{
	BIO *bio = memory_of(file);
	X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	bool is_good = false;

	for (; certificate; certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) {
		is_good = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), certificate) == 1;
		X509_free(certificate);
		if (!is_good)
			break;
	}
	BIO_free(bio);
	return is_good;
}

int gate_tls_way_of_certificates(struct gate_tls_file chain, struct gate_tls_file key,
				 struct gate_tls_file authority, struct gate_tls_way **ret,
				 struct diag *diag)
{
	struct gate_tls_way *way;
	const char *what = NULL;

	if (way_new(&way))
		return diag_fail(diag, -ENOMEM, "TLS 1.3 with %s cannot be set up", CIPHER);
	if (!use_chain(way->ctx, chain))
		what = "this node's certificate";
	else if (!use_key(way->ctx, key))
		what = "the key of this node's certificate";
	else if (!use_authority(way->ctx, authority))
		what = "the authority's certificate";
	if (what) {
		const char *why = ERR_reason_error_string(ERR_get_error());

		diag_set(diag, "%s is not one in PEM that can be used: %s", what,
			 why ? why : "it is empty");
		gate_tls_way_free(way);
		ERR_clear_error();
		return -EINVAL;
	}
	ERR_clear_error();
	SSL_CTX_set_verify(way->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	*ret = way;
	return 0;
}

/* ---- connections ---- */

int gate_tls_new(struct gate_tls_way *way, int fd, bool is_caller, struct gate_tls **ret)
{
	struct gate_tls *tls = calloc(1, sizeof(*tls));

	if (tls)
		tls->ssl = SSL_new(way->ctx);
	if (!tls || !tls->ssl || !SSL_set_fd(tls->ssl, fd)) {
		gate_tls_free(tls);
		ERR_clear_error();
		return -ENOMEM;
	}
	tls->by_key = way->by_key;
	if (is_caller)
		SSL_set_connect_state(tls->ssl);
	else
		SSL_set_accept_state(tls->ssl);
	if (way->by_key && is_caller) /* none is trusted: the key, or nothing */
		SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, NULL);
	*ret = tls;
	return 0;
}

void gate_tls_free(struct gate_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl); /* the socket is left open */
	free(tls);
}

/* Of a certificate that was not believed here. */
static int certificate_refused(long result, struct diag *diag)
{
	if (result == X509_V_ERR_CERT_NOT_YET_VALID || result == X509_V_ERR_CERT_HAS_EXPIRED)
		diag_set(diag,
			 "its certificate: %s: compare the clocks (`date` there and here), and "
			 "the dates in the certificate",
			 X509_verify_cert_error_string(result));
	else
		diag_set(diag,
			 "its certificate is not one of this cluster's authority: %s: compare the "
			 "files of peer_certificates there and here",
			 X509_verify_cert_error_string(result));
	return GATE_TLS_E_REFUSED;
}

/* What OpenSSL's reasons mean to people; its names have those of RFC 8446's alerts in them. */
#define BY_KEY 1
#define BY_CERTIFICATES 2
static const struct {
	int reason, ways;
	const char *text;
} reasons[] = {
    {SSL_R_CERTIFICATE_VERIFY_FAILED, BY_KEY,
     "it shows a certificate, and this node has a key: set peer_key on both, or peer_certificates "
     "on both"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, BY_CERTIFICATES,
     "it has no certificate to show: set peer_certificates on both, or peer_key on both"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, BY_CERTIFICATES,
     "it does not know the authority of this node's certificate: compare the files of "
     "peer_certificates there and here"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, BY_CERTIFICATES,
     "this node's certificate has expired, or is not valid yet by its clock: compare the clocks "
     "(`date` there and here), and the dates in the certificate"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, BY_CERTIFICATES,
     "it does not believe this node's certificate: compare the clocks (`date` there and here) and "
     "the files of peer_certificates"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, BY_CERTIFICATES,
     "it wants another certificate: compare the files of peer_certificates there and here"},
    {SSL_R_WRONG_VERSION_NUMBER, BY_KEY | BY_CERTIFICATES,
     "what answers there speaks no TLS: is it the port of peer_listen there?"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, BY_KEY | BY_CERTIFICATES,
     "what answers there speaks no TLS 1.3: is it the port of peer_listen there?"},
};

static int library_refused(const struct gate_tls *tls, struct diag *diag)
{
	const unsigned long error = ERR_peek_error();
	const char *reason = ERR_reason_error_string(error);
	const int way = tls->by_key ? BY_KEY : BY_CERTIFICATES;

	for (size_t i = 0; i < BASE_ARRAY_LEN(reasons); i++) {
		if (ERR_GET_REASON(error) != reasons[i].reason || !(reasons[i].ways & way))
			continue;
		return diag_fail(diag, GATE_TLS_E_REFUSED, "%s", reasons[i].text);
	}
	if (tls->by_key)
		diag_set(diag,
			 "one of the two does not have this cluster's key: compare `sha256sum` of "
			 "the files of peer_key there and here (%s)",
			 reason ? reason : "TLS");
	else
		diag_set(diag, "the handshake failed: %s", reason ? reason : "TLS");
	return GATE_TLS_E_REFUSED;
}

static int what_is_wrong(const struct gate_tls *tls, int result, struct diag *diag)
{
	const int error = errno;
	const int kind = SSL_get_error(tls->ssl, result);
	const long verified = SSL_get_verify_result(tls->ssl);
	int r = GATE_TLS_E_CLOSED;

	if (kind == SSL_ERROR_WANT_READ)
		return GATE_TLS_E_READ;
	if (kind == SSL_ERROR_WANT_WRITE)
		return GATE_TLS_E_WRITE;
	if (kind == SSL_ERROR_SSL &&
	    ERR_GET_REASON(ERR_peek_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
		r = !tls->by_key && verified != X509_V_OK ? certificate_refused(verified, diag)
							  : library_refused(tls, diag);
	else if (kind == SSL_ERROR_SYSCALL && error)
		diag_set(diag, "the connection broke: %s", strerror(error));
	else
		diag_set(diag, "it hung up");
	ERR_clear_error();
	return r;
}

int gate_tls_shake(struct gate_tls *tls, struct diag *diag)
{
	int result;

	ERR_clear_error();
	errno = 0;
	result = SSL_do_handshake(tls->ssl);
	if (result != 1)
		return what_is_wrong(tls, result, diag);
	if (!tls->by_key || SSL_session_reused(tls->ssl))
		return 0;
	return diag_fail(diag, GATE_TLS_E_REFUSED,
			 "it proved itself by something else than the cluster's key: is peer_key "
			 "set there, too?");
}

static int pass_on(struct gate_tls *tls, bool writes, uint8_t *bytes, size_t size, size_t *done,
		   struct diag *diag)
{
	while (*done < size) {
		size_t n = 0;
		int result;

		ERR_clear_error();
		errno = 0;
		result = writes ? SSL_write_ex(tls->ssl, bytes + *done, size - *done, &n)
				: SSL_read_ex(tls->ssl, bytes + *done, size - *done, &n);
		if (result != 1)
			return what_is_wrong(tls, result, diag);
		*done += n;
	}
	return 0;
}

int gate_tls_read(struct gate_tls *tls, void *ret, size_t size, size_t *done, struct diag *diag)
{
	return pass_on(tls, false, ret, size, done, diag);
}

int gate_tls_write(struct gate_tls *tls, const void *data, size_t size, size_t *done,
		   struct diag *diag)
{
	return pass_on(tls, true, (uint8_t *)(uintptr_t)data, size, done, diag);
}

bool gate_tls_is_of(const struct gate_tls *tls, const char *node)
{
	X509 *certificate;
	bool is_of;

	if (tls->by_key)
		return true;
	certificate = SSL_get1_peer_certificate(tls->ssl);
	is_of = certificate && X509_check_host(certificate, node, 0,
					       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
	X509_free(certificate);
	return is_of;
}

int gate_tls_export(struct gate_tls *tls, const void *context, size_t context_size, void *ret,
		    size_t size)
{
	return SSL_export_keying_material(tls->ssl, ret, size, LABEL, sizeof(LABEL) - 1, context,
					  context_size, 1) == 1
		   ? 0
		   : -EIO;
}
