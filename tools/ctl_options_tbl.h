/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of access-ctl, declared once; access-ctl(1) has the same, which a test compares.
 * OPTION(name, kind, member, least, most, choices, arg, help)
 */
/* clang-format off */
OPTION("socket", OPTION_TEXT, socket, 0, 0, NULL, "PATH", "accessd's socket (else $ACCESS_SOCKET, the system's, this user's private one)")
OPTION("timeout-s", OPTION_COUNT, timeout_s, 1, 3600, NULL, "T", "wait so long for all that accessd has to say (10)")
OPTION("json", OPTION_FLAG, json, 0, 0, NULL, NULL, "print the answer as JSON")
OPTION("user", OPTION_TEXT, cache.user, 0, 0, NULL, "UID|everybody", "of cache: act on what is kept for this user (the one who asks); for root and accessd's own user")
OPTION("format", OPTION_CHOICE, plan.format, 0, 0, "csv|json|plan", "FORMAT", "of plan export: csv (the default, a line a sample), json (a line a batch), or plan, which can be replayed")
OPTION("output", OPTION_TEXT, plan.output, 0, 0, NULL, "FILE", "where plan export writes to (standard output)")
OPTION("form", OPTION_CHOICE, form, 0, 0, "auto|packed|indexed|file|decoded|deepest", "FORM", "of convert, cache warm and cache lend, which have a usual one: auto")
OPTION("pipeline", OPTION_TEXT, warm.pipeline, 0, 0, NULL, "NAME|JSON", "of cache warm and cache lend: that of the jobs to come (imagenet-train; of a named data set its usual one)")
OPTION("jobs", OPTION_COUNT, convert.jobs, 1, 256, NULL, "N", "of convert: pictures at a time (as many as there are processors)")
OPTION("shard-size", OPTION_BYTES, convert.shard_bytes, 0, 0, NULL, "BYTES", "of convert to TARGET.tar: several, TARGET-000000.tar and so on, of so many bytes at most (256M, 1G, ...)")
OPTION("force", OPTION_FLAG, convert.force, 0, 0, NULL, NULL, "of convert: replace TARGET if it is there")
OPTION("check", OPTION_FLAG, convert.check, 0, 0, NULL, NULL, "of convert: verify TARGET instead")
OPTION("help", OPTION_FLAG, help, 0, 0, NULL, NULL, "this text")
OPTION("version", OPTION_FLAG, version, 0, 0, NULL, NULL, "the version")
/* clang-format on */
