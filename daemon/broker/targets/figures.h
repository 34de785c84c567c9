/*
 * The figures of what was sampled, unwound and delivered: of one run of the
 * profiler on a process (daemon/broker/targets/targets.h), of all runs on it (daemon/
 * instance.h), and of all processes.
 */
#ifndef DAEMON_BROKER_TARGETS_FIGURES_H
#define DAEMON_BROKER_TARGETS_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/discard.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/capture/counters.h"

#define DISCARD_REASONS_MAX 32

/* No more than uint64_t. */
struct chunk_counts {
	uint64_t made;
	uint64_t written;
	uint64_t unwritten; /* there should have been a file, and is none */
	uint64_t sent;
	uint64_t spooled; /* to be sent later, perhaps by another daemon */
	uint64_t idle;	  /* not made: nobody ran, and only that was asked for */
	uint64_t discarded[DISCARD_REASONS_MAX]; /* by enum discard */
};

/* All 0 is of one that was never profiled. */
struct instance_figures {
	struct capture_counters capture;
	uint64_t missed_no_capture; /* while there was none, or it died */
	struct unwind_counts unwind;
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of chunks that went on to ship */
	uint32_t lowest_hz;	/* 0: never profiled */
	uint64_t lowered_ns;	/* how long its rate was lowered */
	uint64_t exceeded_ns;	/* and all at their lowest were still too much */
};

struct broker;
struct instance;
struct target;

/* Adds the counters of a struct that has nothing but uint64_t to another's. */
void figures_add_counts(void *sum, const void *more, size_t bytes);

/* Adds more to sum; lowest_hz is the lower, times of the governor the longer.
 */
void figures_add(struct instance_figures *sum, const struct instance_figures *more);

/* All figures of capture for a target, dead ones and the living. */
void figures_capture(const struct broker *b, const struct target *t, struct capture_counters *ret);

/* Of this run, without its chunks: those are counted in its instance. */
void figures_of_target(const struct broker *b, const struct target *t,
		       struct instance_figures *ret);

/* Of all its runs, until now. */
void figures_of_instance(const struct broker *b, const struct instance *i,
			 struct instance_figures *ret);

/* Of all instances, those included that are gone. */
void figures_of_all(const struct broker *b, struct instance_figures *ret);

#endif
