/*
 * What /proc/TID/status says of a thread. Most of it is asked only where a call
 * of its was interrupted and the answer hangs on it: that opens a file while
 * the thread waits. Of a file that cannot be read the answer of these is the
 * one by which less is done to the thread. Those that return enum proc_answer
 * are asked of a thread that can be asked again: of one that is gone they say
 * PROC_NO.
 */
#ifndef LIB_CAPTURE_PROC_STATUS_H
#define LIB_CAPTURE_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/proc/proc.h"

struct status_state {
	char letter;	 /* proc_pid_status(5), State */
	uint32_t tracer; /* 0: none */
};

/* Reads task/TID/status below the descriptor of /proc/PID. *ret is written with PROC_READ. */
must_check enum proc_outcome status_read_state(int proc_fd, uint32_t tid, struct status_state *ret);

/* True for a leader whose threads live on, and for a thread that is not reaped yet. */
bool status_is_dead(const struct status_state *state);

/*
 * It is under a seccomp filter now, or in strict mode; that can begin at any
 * time.
 */
bool status_is_filtered(uint32_t tid);

/* The signal's action is to be ignored: SIG_IGN, not the default. */
bool status_ignores(uint32_t tid, int signal);

/* Neither a handler nor a default action but to ignore it (signal(7)). */
bool status_goes_unnoticed(uint32_t tid, int signal);

/* A signal is on its way to it that it has not blocked. */
bool status_has_pending(uint32_t tid);

/*
 * The kernel made it for its own work in the process, of an io_uring: it never
 * runs code of the program. To be interrupted ends what it waits for, and that
 * comes back as the result (-512). By its flags and its name (proc(5), stat),
 * so that nobody else is taken for one.
 */
enum proc_answer status_is_worker(uint32_t tid);

/* Its process is writing a core. */
enum proc_answer status_dumps_core(uint32_t tid);

#endif
