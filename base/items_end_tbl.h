/* SPDX-License-Identifier: Apache-2.0 */
/* Behind a table of messages that was included: its words mean nothing any more. */
#undef MESSAGE
#undef SMALL
#undef NUMBER
#undef NUMBER_FD
#undef FD
#undef TEXT
#undef FIXED
#undef FIXED_FD
#undef BYTES
