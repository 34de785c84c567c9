/*
 * Finds out what a descriptor of a target refers to: the kind of file, and the state of a socket.
 *
 * Used when a thread was stopped in a system call, to decide whether and how the call is restarted.
 * The module opens no file of the target, and sends no request to a file system, since the file
 * system's server could delay the answer. In all functions but descriptor_close() fd is a
 * descriptor of thread tid, and the upper 32 bits of fd are ignored, as by the kernel.
 *
 * Beware: descriptor_socket() and descriptor_clear_error() use a copy of the descriptor, so for
 * some microseconds capture holds the socket, too. If another thread of the target closes the
 * socket meanwhile, capture's close is the last one. Then the peer sees the end of the connection
 * some microseconds late, and the address becomes free late. Call these functions only for a thread
 * that is stopped in a call on that socket.
 */
#ifndef LIB_CAPTURE_PROC_DESCRIPTOR_H
#define LIB_CAPTURE_PROC_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

enum descriptor_kind {
	DESCRIPTOR_OTHER, /* none of these, or not known */
	DESCRIPTOR_PIPE,
	DESCRIPTOR_STREAM,   /* a TCP socket; since Linux 5.15 also an AF_UNIX stream socket */
	DESCRIPTOR_DATAGRAM, /* a UDP socket */
};

/* Returns DESCRIPTOR_OTHER also if the descriptor is not open. */
enum descriptor_kind descriptor_kind(uint32_t tid, uint64_t fd);

/* Returns true for a socket of any kind; false also if that is not known. */
bool descriptor_is_socket(uint32_t tid, uint64_t fd);

/*
 * Returns true for either end of a pseudoterminal (/dev/ptmx or /dev/pts/N); false for one that was
 * opened as /dev/tty.
 */
bool descriptor_is_pty(uint32_t tid, uint64_t fd);

/*
 * The identity of a file, as stat(2) returns it. While the file is open, no other file has the same
 * identity. All 0 if the descriptor is not open.
 */
struct descriptor_file {
	uint32_t major, minor;
	uint64_t inode;
};
struct descriptor_file descriptor_file(uint32_t tid, uint64_t fd);

struct descriptor_socket {
	/* SO_RCVTIMEO and SO_SNDTIMEO in ns; 0: none, or longer than CLOCK_DURATION_MAX_S. */
	uint64_t receive_ns, send_ns;
	bool is_unix;
	bool at_mark; /* the next byte is urgent: sockatmark(3) */
};

/*
 * Reads the state of a socket of thread tid in process pid. Returns 0; -ENOTSOCK if fd is no
 * socket, or if the thread does not share the descriptors of its process; or an error of
 * pidfd_open(2) or pidfd_getfd(2), such as -ESRCH, -EMFILE or -EPERM.
 */
must_check int descriptor_socket(int32_t pid, uint32_t tid, uint64_t fd,
				 struct descriptor_socket *ret);

/*
 * Clears the error that a socket keeps for the next call on it (SO_ERROR). Does nothing if the
 * socket is non-blocking, or cannot be copied (see the errors of descriptor_socket()).
 */
void descriptor_clear_error(int32_t pid, uint32_t tid, uint64_t fd);

/*
 * Closes descriptor fd of this process, the copy of a socket. Exported for tests. If SO_LINGER is
 * set, close(2) would wait for unsent data: the function ends that wait after 1 ms by SIGALRM and
 * ITIMER_REAL. Afterwards the handler and the mask are as before, and the timer is off, even if it
 * was on.
 */
void descriptor_close(int fd);

#endif
