/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sealing in one pass: from the ring into what is sent, and from what came into the ring, so no byte is copied beside.
 *
 * A nonce is the connection's IV with the frame's number XORed into its last 8 bytes, as TLS 1.3 does it; keys are of
 * one connection and one direction, so none is used twice. Reading begins before the tag is looked at, as it must in one
 * pass; what was read is nobody's until seal_open() has said so.
 *
 * libcrypto is asked for all it needs before the sandbox: it would read its configuration later.
 */

#include "cluster/seal.h"

#include <openssl/evp.h>

#include "base/little.h"

struct seal {
	EVP_CIPHER_CTX *cipher; /* NULL: not sealed */
	uint8_t iv[12];
	uint64_t number; /* of the next frame */
};

static EVP_CIPHER *seal_cipher; /* for ever */

int seal_init(void)
{
	if (!seal_cipher) {
		OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
		seal_cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	}
	return seal_cipher ? 0 : -ENOTSUP;
}

void seal_free(struct seal *seal)
{
	if (!seal)
		return;
	EVP_CIPHER_CTX_free(seal->cipher);
	OPENSSL_cleanse(seal, sizeof(*seal));
	free(seal);
}

void seal_freep(struct seal **seal)
{
	seal_free(*seal);
}

int seal_new(bool is_sealed, const uint8_t key[16], const uint8_t iv[12], struct seal **ret)
{
	_cleanup_(seal_freep) struct seal *seal = calloc(1, sizeof(*seal));

	if (!seal)
		return -ENOMEM;
	if (is_sealed) {
		memcpy(seal->iv, iv, sizeof(seal->iv));
		seal->cipher = EVP_CIPHER_CTX_new();
		/* Which way is said with each nonce. */
		if (!seal->cipher ||
		    !EVP_EncryptInit_ex2(seal->cipher, seal_cipher, key, NULL, NULL))
			return -ENOMEM;
	}
	*ret = base_take_ptr(seal);
	return 0;
}

unsigned seal_tag(const struct seal *seal)
{
	return seal->cipher ? 16 : 8;
}

/* Begins the next frame: nonce, and the length as additional data. */
static bool begin(struct seal *seal, bool encrypts, const uint8_t length[FRAME_LENGTH])
{
	uint8_t nonce[12], number[8];
	int n;

	memcpy(nonce, seal->iv, sizeof(nonce));
	little_put_64(number, seal->number++);
	for (unsigned i = 0; i < sizeof(number); i++)
		nonce[4 + i] ^= number[7 - i];
	return EVP_CipherInit_ex2(seal->cipher, NULL, NULL, nonce, encrypts, NULL) &&
	       EVP_CipherUpdate(seal->cipher, NULL, &n, length, FRAME_LENGTH);
}

static bool go_on(struct seal *seal, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	int n = 0;

	return bytes == 0 ||
	       (EVP_CipherUpdate(seal->cipher, to, &n, from, (int)bytes) && (uint32_t)n == bytes);
}

/* The tag of one that does not encrypt. */
static uint64_t sum_of(struct seal *seal, const uint8_t first[SEAL_FIRST], const uint8_t *body,
		       uint32_t bytes)
{
	uint8_t all[SEAL_FIRST + 8];

	memcpy(all, first, SEAL_FIRST);
	little_put_64(all + SEAL_FIRST, hash_checksum(body, bytes));
	return hash_checksum(all, sizeof(all)) ^ seal->number++;
}

void seal_around(struct seal *seal, const uint8_t head[FRAME_HEAD], const uint8_t *body,
		 uint32_t bytes, uint8_t ret_first[SEAL_FIRST], uint8_t ret_tag[SEAL_MOST_TAG])
{
	little_put_32(ret_first, FRAME_HEAD + bytes + seal_tag(seal));
	memcpy(ret_first + FRAME_LENGTH, head, FRAME_HEAD);
	little_put_64(ret_tag, sum_of(seal, ret_first, body, bytes));
}

bool seal_encrypts(const struct seal *seal)
{
	return seal->cipher != NULL;
}

/* All of the frame but its length and its head, which are there in plain. */
static void seal_plainly(struct seal *seal, const uint8_t *first, uint32_t first_bytes,
			 const uint8_t *body, uint32_t bytes, uint8_t *frame)
{
	uint8_t *at = frame + SEAL_FIRST;

	if (first_bytes)
		memcpy(at, first, first_bytes);
	if (bytes)
		memcpy(at + first_bytes, body, bytes);
	bytes += first_bytes;
	little_put_64(at + bytes, sum_of(seal, frame, at, bytes));
}

int seal_frame(struct seal *seal, const uint8_t head[FRAME_HEAD], const uint8_t *first,
	       uint32_t first_bytes, const uint8_t *body, uint32_t bytes, uint8_t *ret)
{
	uint8_t *at = ret + SEAL_FIRST, end[16];
	int n;

	little_put_32(ret, FRAME_HEAD + first_bytes + bytes + seal_tag(seal));
	if (!seal->cipher) {
		memcpy(ret + FRAME_LENGTH, head, FRAME_HEAD);
		seal_plainly(seal, first, first_bytes, body, bytes, ret);
		return 0;
	}
	if (!begin(seal, true, ret) || !go_on(seal, ret + FRAME_LENGTH, head, FRAME_HEAD) ||
	    !go_on(seal, at, first, first_bytes) || !go_on(seal, at + first_bytes, body, bytes) ||
	    !EVP_EncryptFinal_ex(seal->cipher, end, &n) ||
	    !EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_GET_TAG, 16, at + first_bytes + bytes))
		return -EIO;
	return 0;
}

int seal_open(struct seal *seal, const uint8_t first[SEAL_FIRST], const uint8_t *body,
	      uint32_t bytes, const uint8_t *tag, uint8_t ret_head[FRAME_HEAD], uint8_t *ret_body)
{
	uint8_t wanted[16], end[16];
	int n;

	if (!seal->cipher) {
		if (sum_of(seal, first, body, bytes) != little_64(tag))
			return -EBADMSG;
		memcpy(ret_head, first + FRAME_LENGTH, FRAME_HEAD);
		if (bytes && body != ret_body)
			memcpy(ret_body, body, bytes);
		return 0;
	}
	memcpy(wanted, tag, sizeof(wanted));
	if (!begin(seal, false, first) ||
	    !go_on(seal, ret_head, first + FRAME_LENGTH, FRAME_HEAD) ||
	    !go_on(seal, ret_body, body, bytes) ||
	    !EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_SET_TAG, 16, wanted))
		return -EIO;
	return EVP_DecryptFinal_ex(seal->cipher, end, &n) > 0 ? 0 : -EBADMSG;
}
