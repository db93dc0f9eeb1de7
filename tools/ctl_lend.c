/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lending is a job that takes no batches. accessd has nothing to do for it, and makes what this node owns of the data set
 * for the jobs of other nodes (daemon/serve/fill_ahead.c); they ask here for the rest, too. So a node without jobs
 * prepares for others, and nothing but the job says so: when it goes, that ends.
 */

#include <unistd.h>

#include "tools/ctl_peer.h"
#include "tools/ctl_warm_parts.h"

#define LEND_LOOK_US 1000000

static void lend_draw(struct warming *warming, uint64_t now_ns)
{
	const struct ctl_warm_look *look = &warming->look;
	const char *words = ctl_peer_ahead(look->ahead);

	if (!warming->draws && warming->line_ns && now_ns - warming->line_ns < WARM_LINE_NS)
		return;
	warming->line_ns = now_ns;
	if (!look->is_on && look->why[0]) {
		fprintf(stderr, "%snothing is kept: %s", warming->draws ? "\r" : "", look->why);
		fputs(warming->draws ? "\033[K" : "\n", stderr);
		return;
	}
	fprintf(stderr, "%s%s: %llu samples made for other nodes, %llu kept; %s%s%s",
		warming->draws ? "\r" : "", look->form, (unsigned long long)look->made_ahead,
		(unsigned long long)look->kept, words ? words : "nothing is made",
		look->not_shared[0] ? ": " : "", look->not_shared);
	fputs(warming->draws ? "\033[K" : "\n", stderr);
}

/* accessd is away, or has just come, or what it worked with was lost: the job is opened again when it asks for a batch. */
static int lend_return(struct warming *warming, struct diag *diag)
{
	bool is_last;

	if (!warming->is_away)
		fprintf(stderr, "%s%s; waiting for it\n", warming->draws ? "\n" : "",
			diag->text[0] ? diag->text : "accessd begins anew with this data set");
	warming->is_away = true;
	diag->text[0] = '\0';
	return warm_take(warming, &is_last, diag);
}

static int lend_hold(struct warming *warming, struct diag *diag)
{
	int r = 0;

	while (!r && !warm_signalled()) {
		warm_look(warming, diag);
		if (!warming->look.is_there) {
			r = lend_return(warming, diag);
		} else {
			warming->is_away = false;
			lend_draw(warming, base_now_ns());
		}
		if (!r && !warm_signalled())
			usleep(LEND_LOOK_US); /* a signal ends it */
	}
	return r;
}

int ctl_lend(struct warming *warming, struct diag *diag)
{
	const struct ctl_warm_look *look = &warming->look;
	int r;

	if (!warm_signalled() && !look->is_measured)
		return diag_fail(
		    diag, CTL_E_NONE,
		    "too little could be measured to choose what to make; name a --form");
	if (!warm_signalled() && strcmp(look->form, "file") == 0)
		return diag_fail(
		    diag, CTL_E_NONE,
		    "no form of these samples is worth it on this machine, as measured; "
		    "--form names one all the same");
	warming->line_ns = 0;
	r = lend_hold(warming, diag);
	if (warming->draws)
		fputs("\r\033[K", stderr);
	if (!r && !warming->is_away)
		warm_look(warming, diag);
	printf("%s: %llu samples were made for other nodes; what is kept stays\n", look->form,
	       (unsigned long long)look->made_ahead);
	return r ? r : fflush(stdout) == 0 ? 0 : CTL_E_NONE;
}
