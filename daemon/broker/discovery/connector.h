/*
 * The kernel's proc connector (CONFIG_PROC_EVENTS; include/uapi/linux/cn_proc.h): a netlink
 * socket on which the kernel reports every fork, exec and change of ids or name on the machine
 * as it happens. Discovery uses it to see new processes at once. A socket filter removes the
 * events of threads and the ends of processes before they reach the broker.
 *
 * Listening needs CAP_NET_ADMIN and the initial network and pid namespaces. In another namespace
 * the kernel sends nothing and reports no error. Therefore the caller must not rely on events
 * before CONNECTOR_ANSWER has arrived.
 */
#ifndef DAEMON_BROKER_DISCOVERY_CONNECTOR_H
#define DAEMON_BROKER_DISCOVERY_CONNECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

enum connector_what {
	CONNECTOR_ANSWER, /* the kernel confirms that it sends events; pid is 0 */
	CONNECTOR_FORK,	  /* pid is a new process */
	CONNECTOR_EXEC,	  /* pid has executed a program */
	CONNECTOR_CHANGE, /* ids or the name of pid changed */
};

struct connector_event {
	enum connector_what what;
	int32_t pid;
	uint64_t time_ns; /* of the event, by CLOCK_MONOTONIC */
};

/*
 * Opens the socket and asks the kernel for events. *ret_fd is the caller's, to be closed by
 * connector_close(). The process needs CAP_NET_ADMIN for this call and for connector_close().
 * Returns 0 or -errno.
 */
must_check int connector_open(int *ret_fd);
/* Tells the kernel to send no more events, and closes the socket. *fd may be -1. */
void connector_close(int *fd);

/*
 * Decodes one datagram of the socket, of n bytes: the headers of netlink and of the connector, and
 * an event. Returns false if the event is none of enum connector_what, is about a thread other than
 * the leader of a process, or says that the kernel sends no events.
 */
bool connector_parse(const void *message, size_t n, struct connector_event *ret);

/*
 * Calls fn for each event in the socket's queue, for at most 4096 messages a call; further messages
 * stay in the queue for the next call. e is valid until fn returns. Never waits. Returns 0; or
 * -ENOBUFS if the kernel dropped events because the queue was full: fn is called for the events in
 * the queue nevertheless.
 */
typedef void (*connector_fn)(void *ctx, const struct connector_event *e);
must_check int connector_read(int fd, connector_fn fn, void *ctx);

#endif
