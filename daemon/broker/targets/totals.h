/*
 * The statistics of runs of the profiler (struct run_totals): what was sampled, unwound and
 * delivered since a run began, by the capture and unwind processes that run now and by those that
 * have died.
 *
 * The present capture process counts in its heartbeat page, and the present unwind process
 * reports its counts in messages. When such a process dies, this module adds its counts to those
 * of earlier processes in struct run. This module also counts the samples and chunks that were lost
 * with the process, and the ticks that were missed until its successor ran.
 */
#ifndef DAEMON_BROKER_TARGETS_TOTALS_H
#define DAEMON_BROKER_TARGETS_TOTALS_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/*
 * Call it with hung_target 0 when capture has ended: it sets run.in_capture to false in all runs.
 * If capture hangs in the memory of a target (watch_capture_hangs), call it before that, too, with
 * the id of that target's run: this closes the run and sets run.left_out. The first of these calls
 * adds the counters of capture to those of the runs, and sets run.no_capture_since_ns; the second
 * one for the same capture adds nothing.
 */
void totals_capture_died(struct targets *ts, uint32_t hung_target);
/*
 * Call it when capture has detached from the process of run in a crash (crash.h): adds the counters
 * of capture to those of the run. Until capture has attached again, totals_count_missed() counts
 * ticks as missed because of the crash. now_ns: CLOCK_MONOTONIC.
 */
void totals_left_in_crash(const struct targets *ts, struct run *run, uint64_t now_ns);
/*
 * Call it when the unwind process u has ended: adds the counts of u to those of its runs, counts
 * the unfinished chunks as lost, and sets the runs' sessions to SESSION_NONE. Sets RUN_CLOSED for
 * the runs of u that are RUN_CLOSING; for all runs of u if the broker is in PHASE_STOPPING or a
 * later phase (state/state.h).
 */
void totals_unwind_died(struct targets *ts, struct unwind *u);
/*
 * Counts the ticks from run->no_capture_since_ns until now_ns (CLOCK_MONOTONIC) as missed, by all
 * threads that the process had then, and sets run->no_capture_since_ns to now_ns. Does nothing if
 * run->no_capture_since_ns is 0. Also does nothing outside of the phase RUN_PROFILED, unless
 * capture has detached in a crash. Call it:
 * - before the run leaves the phase RUN_PROFILED;
 * - when a process has ended from which capture had detached in a crash;
 * - when capture has attached again; the caller then sets run->no_capture_since_ns to 0.
 */
void totals_count_missed(struct run *run, uint64_t now_ns);
/*
 * Call it when the broker continues after a suspension (SIGTSTP), in which there was no capture.
 * The ticks before now_ns (CLOCK_MONOTONIC) that totals_count_missed() has not counted yet never
 * count as missed.
 */
void totals_suspension_ended(struct targets *ts, uint64_t now_ns);

/*
 * Adds *more to *sum. lowest_hz becomes the lower of those that are not 0; lowered_ns and
 * exceeded_ns become the longer.
 */
void totals_add(struct run_totals *sum, const struct run_totals *more);

/*
 * Sets *ret to the counters of capture for a run: the sum of those of earlier capture processes and
 * of the present one. The members threads, refused and refused_error are no counters and have no
 * meaning in *ret: see totals_threads().
 */
void totals_capture(const struct targets *ts, const struct run *run, struct capture_counters *ret);

/*
 * Returns the number of threads that capture knows of the run's process. If capture has died, or
 * has detached in a crash, returns their number at that time until capture has attached again.
 */
uint64_t totals_threads(const struct targets *ts, const struct run *run);

/* Sets *ret to the statistics of one run, without its chunks, which the instance counts. */
void totals_of_run(const struct targets *ts, const struct run *run, struct run_totals *ret);

/* Sums the statistics of all runs on a process, until now. */
void totals_of_instance(const struct targets *ts, const struct instance *i, struct run_totals *ret);

/* Returns the lowest sampling rate of the runs, in Hz, or rate_hz if there was no run. */
static inline uint32_t totals_lowest_hz(const struct run_totals *totals, uint32_t rate_hz)
{
	return totals->lowest_hz != 0 ? totals->lowest_hz : rate_hz;
}

/*
 * Return the number of samples taken, of samples missed and of chunks discarded: sums over all
 * kinds and reasons.
 */
uint64_t totals_taken(const struct run_totals *totals);
uint64_t totals_missed(const struct run_totals *totals);
uint64_t totals_discarded(const struct run_totals *totals);

/* Sums the statistics of all instances, those included that were freed. */
void totals_of_all(const struct targets *ts, struct run_totals *ret);

#endif
