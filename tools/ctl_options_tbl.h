/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of access-ctl, declared once; access-ctl(1) has the same, which a test compares.
 * OPTION(name, kind, member, least, most, choices, arg, help)
 */
/* clang-format off */
OPTION("socket", OPTION_TEXT, socket, 0, 0, NULL, "PATH", "accessd's socket (default: $ACCESS_SOCKET, the system's, or this user's private one)")
OPTION("timeout-s", OPTION_COUNT, timeout_s, 1, 3600, NULL, "T", "seconds to wait for accessd in all (default: 10)")
OPTION("json", OPTION_FLAG, json, 0, 0, NULL, NULL, "print the answer as JSON")
OPTION("user", OPTION_TEXT, cache.user, 0, 0, NULL, "UID|everybody", "cache: the user whose cache is meant (default: the caller); for root and accessd's own user")
OPTION("format", OPTION_CHOICE, plan.format, 0, 0, "csv|json|plan", "FORMAT", "plan export: csv (default; a line per sample), json (a line per batch), or plan (can be replayed)")
OPTION("output", OPTION_TEXT, plan.output, 0, 0, NULL, "FILE", "plan export: output file (default: standard output)")
OPTION("form", OPTION_CHOICE, form, 0, 0, "auto|packed|indexed|file|decoded|deepest", "FORM", "convert, cache warm, cache lend: stored form (default: auto)")
OPTION("pipeline", OPTION_TEXT, warm.pipeline, 0, 0, NULL, "NAME|JSON", "cache warm, cache lend: pipeline of the coming jobs (default: imagenet-train, or the one of the named data set)")
OPTION("jobs", OPTION_COUNT, convert.jobs, 1, 256, NULL, "N", "convert: pictures at a time (default: the number of processors)")
OPTION("shard-size", OPTION_BYTES, convert.shard_bytes, 0, 0, NULL, "BYTES", "convert to TARGET.tar: write TARGET-000000.tar and so on, each of at most so many bytes (256M, 1G, ...)")
OPTION("force", OPTION_FLAG, convert.force, 0, 0, NULL, NULL, "convert: replace an existing TARGET")
OPTION("check", OPTION_FLAG, convert.check, 0, 0, NULL, NULL, "convert: verify TARGET instead")
OPTION("help", OPTION_FLAG, help, 0, 0, NULL, NULL, "print this text")
OPTION("version", OPTION_FLAG, version, 0, 0, NULL, NULL, "print the version")
/* clang-format on */
