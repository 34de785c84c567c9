/*
 * Reads and closes sockets of peers without taking the descriptors that a peer may send
 * along. The broker must not drop the last reference to such a descriptor: that may wait for
 * as long as the peer wants (a TCP socket with SO_LINGER, socket(7)).
 *
 * From Linux 6.16 on the kernel refuses descriptors (SO_PASSRIGHTS). Then is_safe is true,
 * and the functions are recv(2) and close(2). With an older kernel a message is peeked at
 * before it is read, and a socket with descriptors in its queue is handed to a forked child
 * that is killed: the end of a process does not wait (inet_release() in net/ipv4/af_inet.c).
 * SIGCHLD reports that child's end.
 */
#ifndef DAEMON_BROKER_CONTROL_DRAIN_H
#define DAEMON_BROKER_CONTROL_DRAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

/*
 * Reads one message of fd, a SOCK_SEQPACKET socket, without waiting. Returns its length, 0
 * at the end, -EBADMSG if it has descriptors (the message stays in the queue), or -errno.
 */
must_check ssize_t drain_recv(int fd, bool is_safe, void *bytes, size_t size);

/* Closes *fd with the messages that are left in its queue. */
void drain_close(int *fd, bool is_safe);

#endif
