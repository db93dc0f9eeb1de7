/* SPDX-License-Identifier: Apache-2.0 */
/* access-exporter: what accessd's status says, for Prometheus and for a browser. */
#include <stdio.h>

#include "base/log.h"
#include "exporter/metric.h"
#include "exporter/serve.h"
#include "tools/option.h"

struct config {
	struct serve_config serve;
	bool list, help, version;
};

static const struct option options[] = {
#define OPTION(name, kind, member, least, most, choices, arg, help) \
	{name, kind, offsetof(struct config, member), least, most, choices, arg, help, 0},
#include "exporter/options_tbl.h"
#undef OPTION
};

static int fail(const char *text, int status)
{
	fprintf(stderr, "access-exporter: %s\n", text);
	return status;
}

int main(int argc, char **argv)
{
	_cleanup_free_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct config config = {.serve.listen = "127.0.0.1:9834"};
	struct diag diag = {.text = "out of memory"};
	unsigned n_rest = 0;

	if (!rest || option_parse(options, BASE_ARRAY_LEN(options), argc, argv, &config, rest,
				  &n_rest, &diag))
		return fail(diag.text, 2);
	if (n_rest)
		return fail("it takes options alone; --help lists them", 2);
	if (config.help) {
		puts("Usage: access-exporter [OPTION]...\n"
		     "Serves the status of accessd as metrics for Prometheus, and as a page.\n\n"
		     "Options:");
		option_print(options, BASE_ARRAY_LEN(options), stdout);
	} else if (config.version) {
		puts("access-exporter " PACKAGE_VERSION);
	} else if (config.list) {
		metric_list(stdout);
	} else {
		log_init("access-exporter", LOG_LEVEL_INFO);
		return serve_run(&config.serve, &diag) ? fail(diag.text, 1) : 0;
	}
	return 0;
}
