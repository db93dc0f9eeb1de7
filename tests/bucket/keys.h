/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys that were made for tests, by `openssl genpkey`, and what `openssl dgst -sha256 -sign` makes of "header.claims" with the
 * first, in base64url. */

/* clang-format off */
#define KEYS_RSA \
	"-----BEGIN PRIVATE KEY-----\n" \
	"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC85+4kiUadM0nT\n" \
	"Fc+KVtX3J/jenCo3vNby+ncIokDmK/bbtL3ETHcGcLI9dL/Hl3PIPNklBLj1VdRV\n" \
	"xpIe+GkVNVlM3Qmt0CYMWvkWmWVS29Vddc93vhYplucuGxBDK3NrWWd7cma83uRF\n" \
	"Skyt4oYPo+K6Fdhbfj3ZOxbPKvD+dg6QIXbQjqqpqD0y0sJqiNe7YAN6e8aGOiYh\n" \
	"8dEdV+DFeMZwt2l+uNd3UqufJoNQZvf545LsZj2BDk57qI9iByTyI07ZMdNLUbeE\n" \
	"xtys8mULgu15OBitP3TtSW6qxEmNgwIH/UHC5OEqbz6rbc0vmmu3a+7+Q9igu0+W\n" \
	"2WWwWEhpAgMBAAECggEADNUklE7PATbOuQwuQRONDXElstmg9JBbeb4SAAAlsH0k\n" \
	"E+C/U2puW32kXhBkRsa/EscvaRhdCC2AcyM+IeR2Hv60xkfttGUDcKttaF+bRnmw\n" \
	"kNzD7zp2fvTFV5h3DlkRSiWUpgoreIEbuKlHdDiDKuTTLhj1zaFRykP9VK1yGZcF\n" \
	"aM8gqf6R4Fl4Nnxu4CzdogEc7LEZnb8N1nDPnsfPTU6n0xOzQ9+7Zl6tjJcsZWbJ\n" \
	"yXBljs3ebFCrpYxEYti5zGucujn26fwdRHcY1ofVk0MsQonuc3JMKmZtN59IpDnJ\n" \
	"DHCHksiHBGzOZoR0UItu4LZYJ8gHFUqp0nVIU4SqAQKBgQD3SiMUQkngKV1lb+y4\n" \
	"0Jj+BOUM6q1t02lDEVWCRszfpwEESyDakmoOYBBqgmv1tsuxNrPzGutVWuTAMsdo\n" \
	"ZTYqIMX5zakWAmYZV2+mUwjVKjQ5e1rZ0X923DJoRKFApVkY6uzZH2VP1Je+6bJh\n" \
	"p+2Yx5SJx6Sc9OjWbR7IDUNzsQKBgQDDj1XvBtZk5jlUbcIT6q9YDX7vU+MlA0fT\n" \
	"VpxrYfYRnYzaqH2VKGXUAqskohemaG54qUypwS60Cp0FwwTsJ/58BFhvntCqqDMx\n" \
	"lF0eG0+uEC+t6bo6LdH0mKVsLNX3dFRjlJP5H7KGszxPfmfDkOPUTv6tUF9bG0at\n" \
	"xUQ7JatmOQKBgG6cKKitJeIwXmg68gWQuH4WrmViqwRO5exr2nWVOZpoVtoWyLE7\n" \
	"gFjBu1YI1EVp6B5yO3dn+Q+Kwnr9u5gEfX/GfQdJaHJBzG1VYMliprbCU+3KMU7w\n" \
	"mDUQNTPSTtZdn0a3/gz4MBbPHrj0SyfHN015KAWg2Q6jtWoEERqmZB9hAoGAbMfD\n" \
	"jmVoRtIFm+A97+RAyyMes7QfCsyrXHS2J8ljHmNcIZlN2fWRxwABASylKSy4HqhV\n" \
	"+6t49i9dLwJPL6oDliq4osZd3kAX0gFsVr3sca+RRhVYQNqSCpQKmITMNIziEE5q\n" \
	"jU5DeUgkSTfQMmnbQZL7eZ7WnBAtHaY4kQogMIkCgYEAzJetPVgzA+WY75p6GyaJ\n" \
	"vHeJYt9nmluKAyK8KqZ3PB+s/tSI8j+EW/pJ5SKWKTp2KnGuLCfv75O4NPQl+UjM\n" \
	"21mwQ91oC/E/xCCgMmCg3aVWdwvH5UmeGZiZiT87vIkV8zH7FUrjcYFXS38+vqw/\n" \
	"M/vQTdeQwxFMInwPWsMOK8I=\n" \
	"-----END PRIVATE KEY-----\n"
#define KEYS_SIGNATURE \
	"Bev93UBBT48ImE3bvo6Wle4P8h-o4dPnB6J71cARiPU-cfltUCijPFwP4Ep0ErYp" \
	"bC3hBZojvwtKWfkwNTWNAX-GdTiIFUivMCo8-aOC88apX0Tx9kHZbNMjViajXST7" \
	"X05DM3YEReTvBRMcmrja_V-zPUNb2RUDxmSIPVYCYuYlWpr12W4I64FsnFKtSNXJ" \
	"SrKlf6iGHqdf2sK68ubgPgHKEVdRCDSbLyBbf1pYLqL5UduJLDC6a___YPyg8Xx2" \
	"Y1_NIPK_zs7G95Ny7GNUEbpzNZew4XT6yK5cMc7kkDpXJlXFdAX_7wTYc_mwB6pH" \
	"YlXcNqz35lVHgtaLsVtZ2A"
#define KEYS_EC \
	"-----BEGIN PRIVATE KEY-----\n" \
	"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLhxoOPyvQx6L+Zah\n" \
	"oAnWnm1y3fK/4pOwyAPxDeO3ZeqhRANCAASqszVDf1YakpYSQXP1errqV4aG/mGR\n" \
	"bD6qmc6vXZQJi7z4Olspeo4nZvI6G94aqVUgFQGo1UypT6okH6mEcwam\n" \
	"-----END PRIVATE KEY-----\n"
/* clang-format on */
