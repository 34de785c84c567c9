/*
 * A line on the terminal that shows how much was sampled so far, updated about once a second.
 * The line is written to standard error, if that is a terminal.
 */
#ifndef DAEMON_BROKER_REPORT_PROGRESS_H
#define DAEMON_BROKER_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct targets;

struct progress {
	bool is_on;
	bool is_shown;	  /* the line is on the terminal and has to be erased */
	uint64_t next_ns; /* time of the next update, by clock_mono_ns() */
};

/* Enables the line if standard error is a terminal and is_quiet is false. */
void progress_init(struct progress *p, bool is_quiet);

/*
 * To be called at every turn: updates the line, about once a second. Never waits, even if the
 * terminal takes no output at the moment.
 */
void progress_check(struct progress *p, struct targets *ts);

/* Erases the line and disables it. */
void progress_end(struct progress *p);

/*
 * The numbers that the line shows, in 80 columns. seconds: the time since capture first attached to
 * a process, without suspensions. threads: how many are profiled now. The other three are the sums
 * of all runs of the profiler so far.
 */
struct progress_numbers {
	uint64_t seconds, threads, samples, missed, chunks;
};
#define PROGRESS_SIZE 128
/*
 * Writes the text of the line, with a NUL. progress_check() adds the control characters that erase
 * the old line and return the cursor.
 */
void progress_format(const struct progress_numbers *numbers, char ret[PROGRESS_SIZE]);

#endif
