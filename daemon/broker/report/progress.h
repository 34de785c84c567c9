/*
 * A line on the terminal that shows the progress of a run, renewed about once a second.
 * Nothing is written where standard error is no terminal.
 */
#ifndef DAEMON_BROKER_REPORT_PROGRESS_H
#define DAEMON_BROKER_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct targets;

struct progress {
	bool is_on;
	bool is_shown;	  /* and is to be taken away again */
	uint64_t next_ns; /* by clock_mono_ns */
};

/* On a terminal, unless nothing is wanted there. */
void progress_init(struct progress *p, bool is_quiet);

/* At every turn. A terminal that was stopped is not waited for. */
void progress_check(struct progress *p, struct targets *ts);

/* Nothing more is said; the line is empty. */
void progress_end(struct progress *p);

/* What is shown; a terminal of 80 columns has room for it. */
struct progress_figures {
	uint64_t seconds, threads, samples, missed, chunks;
};
#define PROGRESS_SIZE 128
void progress_format(const struct progress_figures *f, char ret[PROGRESS_SIZE]);

#endif
