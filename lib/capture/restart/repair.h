/*
 * Making a call go on that was interrupted merely because we are here.
 *
 * For a thread in a ptrace-stop: the result of the call that it was taken out
 * of is rewritten where lib/capture/restart/syscalls.h allows it, so that the kernel
 * starts the call again when the thread is continued; where a handler runs
 * first, the kernel makes EINTR of it, as it would without us.
 */
#ifndef LIB_CAPTURE_RESTART_REPAIR_H
#define LIB_CAPTURE_RESTART_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"

/*
 * True if it is to go on. regs: those of the stopped thread tid. signal: that
 * of a signal-delivery-stop, else 0. One that stops the process interrupts
 * calls without us, too, unless the process ignores it. Files of /proc are
 * opened only where a call was interrupted and the answer hangs on them.
 */
bool repair_is_due(uint32_t tid, const struct user_regs_struct *regs, int signal);

/*
 * True if it has given up its work because it was interrupted, and can do all
 * of it again if nobody interrupts it: not by repair_call, but rest_wait.
 */
bool repair_alone(const struct user_regs_struct *regs);

/* If it is due, rewrites the result; returns true if that was done. */
bool repair_call(uint32_t tid, const struct user_regs_struct *regs, int signal);

#endif
