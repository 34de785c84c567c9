/*
 * When each process is looked at next.
 *
 * The ticks of a process follow from its rate (capture_rate). While all of its threads sleep,
 * looks are left out: plan_after_tick doubles the distance step by step. Any sign of life ends
 * that (plan_at_once). The next tick of each process stands in the capture's list of targets,
 * where capture_next_tick finds the earliest.
 */
#ifndef LIB_CAPTURE_PLAN_H
#define LIB_CAPTURE_PLAN_H

#include <stdint.h>

#include "lib/capture/state.h"

/* A target has come or gone, or has another rate: computes the common rate and all next ticks. */
void plan_all(struct capture *c);

/* Computes the next tick of a process. To be called after each change of what it depends on. */
void plan_target(struct traced_process *t);

/* The process is looked at at its next tick, whether its threads sleep or not. */
void plan_at_once(struct traced_process *t);

/* How many ticks of the process have passed since its last look, up to tick and with it. */
uint64_t plan_ticks_due(const struct traced_process *t, uint64_t tick);

/* At the end of a tick: if all threads sleep, decides how many looks are left out. */
void plan_after_tick(struct traced_process *t, uint64_t tick);

#endif
