/*
 * What the library knows: one struct state for each process, in memory that the
 * kernel empties in a child of fork(2) (MADV_WIPEONFORK). So all zeros is its
 * beginning: nothing open, not connected; and a child need not be told that it
 * is one. Beside it lies the daemon's page (lib/client/protocol.h), or zeros in
 * its place: there is always something to read there.
 *
 * Nobody waits for anybody. What threads count they count atomically; what one
 * of them has to do for all (the socket) is done by whoever comes first, and
 * once more if somebody asked meanwhile (state_settle). A signal handler that
 * interrupts it asks, too, and returns.
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
 * Places for threads whose number the daemon sees differently; of two that fall
 * on the same one, each asks again.
 */
#define STATE_THREADS_MAX 256

struct state {
	/* Atomic. */
	uint32_t generation; /* of processes since the first; 0: wiped */
	uint32_t spans;	     /* sampled root spans that are open */
	uint32_t is_traced;  /* there was one, sampled or not */
	uint32_t command;    /* enum command: the last */
	uint32_t asked;	     /* commands, in all */
	uint32_t told;	     /* commands that stand in `handled`, or will */
	uint32_t has_page;   /* the daemon has answered */
	uint32_t is_due, is_busy;
	uint64_t look_ns; /* when to look after the connection again */
	/* The number here << 32 | the daemon's, 0: not known yet. */
	uint64_t threads[STATE_THREADS_MAX];

	/* Of who is busy. */
	int fd; /* one more than it; 0: none */
	dev_t dev;
	ino_t ino;
	uint32_t commanded; /* of asked: those that were sent on this socket */
	uint32_t beat;
	uint64_t beat_ns;
	uint64_t try_ns;  /* to connect, not before that */
	uint64_t wait_ns; /* and so long after another failure */
};

/* NULL: there was no memory, and nothing has an effect. */
struct state *state_get(void);

/*
 * It can be read at any time, and is meant where has_page is set: in a child it
 * is the parent's until then.
 */
struct protocol_page *state_page(void);

/* Puts the memfd there, or zeros (-1). Of who is busy. Returns 0 or -errno. */
int state_map_page(int fd);

/*
 * CLOCK_MONOTONIC as of the last timer tick of the kernel: no system call,
 * whatever the clock is. In a file of its own (clock.c): unit tests have
 * another.
 */
uint64_t state_now_ns(void);

/*
 * Does work(s) now, or has the thread do it that is at it. Keeps errno, and is
 * no cancellation point.
 */
void state_settle(struct state *s, void (*work)(struct state *s));

/* To do more than that: true if nobody is at it; then state_leave is due. */
bool state_enter(struct state *s);
void state_leave(struct state *s, void (*work)(struct state *s));

static inline uint64_t *state_thread(struct state *s, uint32_t tid)
{
	return &s->threads[tid % STATE_THREADS_MAX];
}

/* The descriptor that a child is to close: it would keep the connection open.
 */
void state_note_fd(int fd);

#endif
