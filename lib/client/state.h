/*
 * The state of libsentry_profd: one struct state for each process. It is in memory that the kernel
 * clears in a child of fork(2) (MADV_WIPEONFORK), so the child starts with all zeros: not
 * connected, no open spans. The daemon's page (struct protocol_page) is mapped behind the state.
 * Before the first connection, and after a connection has ended, zeros are mapped there, so that
 * the page can always be read. The kernel does not clear this page: see state_page().
 *
 * No thread waits for another. Counters are atomic. Only one thread at a time works on the socket:
 * it enters the state, works, and leaves the state. If another thread, or a signal handler, calls
 * state_do_work() meanwhile, that call only sets is_due. Then the thread that has entered the state
 * calls its own work function once more. So all callers pass the same function.
 */
#ifndef LIB_CLIENT_STATE_H
#define LIB_CLIENT_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/client/protocol.h"

#define NS_PER_MS  UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)

#define load(p)	       __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store(p, v)    __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

enum command {
	COMMAND_NONE,
	COMMAND_START,
	COMMAND_STOP,
};

/*
 * Slots for threads whose id the daemon sees differently (another pid namespace). A thread needs
 * its slot until it has read the answer. Threads that share a slot meanwhile replace each other's
 * entry, and then request their id from the daemon again. The daemon looks for a thread among 1024.
 */
#define STATE_THREADS_MAX 1024

struct state {
	/* Accessed atomically by all threads. */

	/*
	 * Distinguishes a process from its parent: state_get() takes the next number of a counter
	 * that a child of fork(2) inherits. So a child has a greater number than its parent. 0: not
	 * set yet, because the state is new or fork(2) has cleared it.
	 */
	uint32_t generation;
	uint32_t spans;	     /* open sampled root spans */
	uint32_t is_traced;  /* a root span has begun, sampled or not */
	uint32_t command;    /* enum command: the last start or stop that the program requested */
	uint32_t n_commands; /* starts and stops that the program has requested */
	/*
	 * Number of starts and stops that were sent on this connection. The daemon counts in
	 * protocol_page.handled how many of these it has carried out.
	 */
	uint32_t n_sent;
	uint32_t has_page; /* the daemon's page is mapped */
	uint32_t n_pages;  /* pages that were mapped so far, one for each connection */
	/* is_due: work was requested. is_busy: a thread has entered the state. */
	uint32_t is_due, is_busy;
	uint64_t check_ns; /* when to check the connection again, by state_now_ns() */
	/*
	 * For each slot: a thread's id in this pid namespace << 32 | its id in the daemon's, which
	 * is 0 until the daemon has answered. 0: the slot is free.
	 */
	uint64_t threads[STATE_THREADS_MAX];

	/* Only for the thread that has entered the state. */
	int cancel; /* its cancelability before that, for pthread_setcancelstate(3) */
	int fd;	    /* the socket's descriptor + 1; 0: none */
	/* The identity of the socket: shows whether the program has closed or replaced fd. */
	dev_t dev;
	ino_t ino;
	uint32_t last_sent; /* n_commands when the last command was sent on this connection */
	uint32_t beat;	    /* the page's beat when it was last read */
	uint64_t beat_ns;   /* when the beat last changed, or the socket was last checked */
	uint64_t try_ns;    /* when to try to connect again */
	uint64_t wait_ns;   /* the current wait between attempts */
};

/* Returns the state of this process, and makes it if needed; NULL: memory cannot be allocated. */
struct state *state_get(void);

/*
 * Returns the daemon's page. Call it only after state_get() has returned a state. The page can be
 * read at any time; its contents are valid only while has_page is set. In a child of fork(2) the
 * parent's page stays mapped until state_map_page(), but has_page is 0.
 */
struct protocol_page *state_page(void);

/*
 * Maps the memfd fd as the daemon's page, or zeros if fd is -1. The caller closes fd, and must have
 * entered the state. Returns 0 or the error of mmap(2).
 */
int state_map_page(int fd);

/*
 * Returns CLOCK_MONOTONIC_COARSE in nanoseconds: the time of the kernel's last timer tick, without
 * a system call. Defined in clock.c, so that unit tests can replace it.
 */
uint64_t state_now_ns(void);

/*
 * Enters the state, calls work(s) and leaves the state. If another thread has entered the state,
 * that thread makes the call instead, possibly after this function has returned. Keeps errno.
 */
void state_do_work(struct state *s, void (*work)(struct state *s));

/*
 * For a caller that works on the socket itself. state_enter() enters the state and returns true, or
 * returns false, without waiting, if a thread has entered it. After true the caller must call
 * state_leave(), which calls work(s) if state_do_work() has been called meanwhile. In between the
 * thread cannot be cancelled, since no other thread could enter the state then.
 */
bool state_enter(struct state *s);
void state_leave(struct state *s, void (*work)(struct state *s));

/* Returns the slot of thread tid in s->threads. Compare the upper half: threads share slots. */
static inline uint64_t *state_thread_slot(struct state *s, uint32_t tid)
{
	return &s->threads[tid % STATE_THREADS_MAX];
}

/*
 * Sets the descriptor that each child of fork(2) closes before fork(2) returns in it; -1: none.
 * This is the socket: as long as a child has it open, the daemon does not notice that the parent
 * has ended.
 */
void state_close_on_fork(int fd);

#endif
