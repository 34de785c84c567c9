/*
 * What a descriptor of a target's is, without opening what it is open on and
 * without a question to its file system, whose server could take its time.
 */
#ifndef LIB_CAPTURE_DESCRIPTOR_H
#define LIB_CAPTURE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

enum descriptor_kind {
	DESCRIPTOR_OTHER, /* nothing of these, or it cannot be told */
	DESCRIPTOR_PIPE,
	DESCRIPTOR_STREAM,   /* a socket: TCP or a stream of AF_UNIX */
	DESCRIPTOR_DATAGRAM, /* a socket of UDP */
	DESCRIPTOR_REGULAR,
	DESCRIPTOR_TTY,
	DESCRIPTOR_SOURCE, /* /dev/zero and /dev/urandom: never empty */
};

/* fd: a number of thread tid's, of which the lower half counts. */
enum descriptor_kind descriptor_kind(uint32_t tid, uint64_t fd);

/* A socket of any kind. */
bool descriptor_is_socket(uint32_t tid, uint64_t fd);

#endif
