/*
 * What a descriptor of a target's is, without opening what it is open on and
 * without a question to its file system, whose server could take its time.
 *
 * Beware: what is asked of a socket is asked of a copy of the descriptor. For
 * some microseconds it is ours as well, and if the target closes it in them,
 * closed last by us. It waits for nothing then, but its peer sees the end, and
 * its address is free, that much later. So only for a thread that is stopped in
 * a call on it: who closes what a thread of its own is using is rare.
 */
#ifndef LIB_CAPTURE_PROC_DESCRIPTOR_H
#define LIB_CAPTURE_PROC_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

enum descriptor_kind {
	DESCRIPTOR_OTHER, /* nothing of these, or it cannot be told */
	DESCRIPTOR_PIPE,
	DESCRIPTOR_STREAM,   /* a socket: TCP or a stream of AF_UNIX */
	DESCRIPTOR_DATAGRAM, /* a socket of UDP */
	DESCRIPTOR_REGULAR,
	DESCRIPTOR_TTY,
	DESCRIPTOR_SOURCE, /* /dev/zero, full, random, urandom: never empty */
};

/* fd: a number of thread tid's, of which the lower half counts. */
enum descriptor_kind descriptor_kind(uint32_t tid, uint64_t fd);

/* A socket of any kind. */
bool descriptor_is_socket(uint32_t tid, uint64_t fd);

/* One end of a pseudoterminal, by its own name: not /dev/tty. */
bool descriptor_is_pty(uint32_t tid, uint64_t fd);

/*
 * Which file it is, as stat(2) tells files apart: as long as it is open, no
 * other one has these. All 0 where there is none.
 */
struct descriptor_file {
	uint32_t major, minor;
	uint64_t inode;
};
struct descriptor_file descriptor_file(uint32_t tid, uint64_t fd);

struct descriptor_socket {
	/*
	 * SO_RCVTIMEO and SO_SNDTIMEO; 0: there is none, or it is longer than
	 * CLOCK_DURATION_MAX_S.
	 */
	uint64_t receive_ns, send_ns;
	bool is_unix;
	bool at_mark; /* the next byte is urgent: sockatmark(3) */
};

/*
 * What a socket of thread tid's, which is one of process pid's, says of itself.
 * Returns 0, -ENOTSOCK, also where the thread's table of descriptors is not the
 * process's, or what pidfd_getfd(2) says: -ENOSYS before Linux 5.6, -EPERM.
 */
must_check int descriptor_socket(int32_t pid, uint32_t tid, uint64_t fd,
				 struct descriptor_socket *ret);

/*
 * Closes a socket. The last close of one with SO_LINGER waits until its data is
 * gone; this does not. SIGALRM and ITIMER_REAL are in use for it, and given
 * back.
 */
void descriptor_close(int fd);

#endif
