#include "daemon/broker/report/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/targets/totals.h"
#include "daemon/common/log_output.h"
#include "lib/base/clock.h"

#define PROGRESS_NS (1 * NS_PER_SEC)

/* Erases to the end of the line (ECMA-48, EL). */
#define ERASE "\033[K"

void progress_init(struct progress *p, bool is_quiet)
{
	*p = (struct progress){
		.is_on = !is_quiet && isatty(STDERR_FILENO) == 1,
	};
}

void progress_format(const struct progress_numbers *numbers, char ret[PROGRESS_SIZE])
{
	(void)snprintf(ret, PROGRESS_SIZE,
		       "%" PRIu64 " s, %" PRIu64 " thread%s, %" PRIu64 " samples, %" PRIu64
		       " missed, %" PRIu64 " chunk%s",
		       numbers->seconds, numbers->threads, numbers->threads == 1 ? "" : "s",
		       numbers->samples, numbers->missed, numbers->chunks,
		       numbers->chunks == 1 ? "" : "s");
}

static void sum_numbers(struct targets *ts, struct progress_numbers *ret)
{
	struct run_totals all;

	totals_of_all(ts, &all);
	*ret = (struct progress_numbers){
		.seconds = ts->state->started_ns == 0
				   ? 0
				   : (state_now_ns(ts->state) - ts->state->started_ns) / NS_PER_SEC,
		.samples = totals_taken(&all),
		.missed = totals_missed(&all),
		.chunks = all.chunks.made,
	};
	FOR_EACH_RUN (run, ts)
		if (run->phase == RUN_PROFILED)
			ret->threads += totals_threads(ts, run);
}

void progress_check(struct progress *p, struct targets *ts)
{
	char text[PROGRESS_SIZE], line[PROGRESS_SIZE + 16];
	struct progress_numbers numbers;
	uint64_t now_ns;
	int n;

	if (!p->is_on)
		return;
	now_ns = clock_mono_ns();
	if (now_ns < p->next_ns)
		return;
	p->next_ns = now_ns + PROGRESS_NS;
	sum_numbers(ts, &numbers);
	progress_format(&numbers, text);
	/*
	 * Moves the cursor to the start of the line, so that the next line of any program
	 * overwrites it.
	 */
	n = snprintf(line, sizeof(line), "%s" ERASE "\r", text);
	p->is_shown |= n > 0 && log_output_write(line, (size_t)n) > 0;
}

void progress_end(struct progress *p)
{
	if (p->is_shown)
		(void)log_output_write(ERASE, strlen(ERASE));
	*p = (struct progress){.is_on = false};
}
