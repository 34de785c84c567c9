/*
 * Reads and closes sockets of peers without receiving the descriptors that a peer may send
 * along. The broker must not drop the last reference to such a descriptor: that may block for as
 * long as the peer wants (a TCP socket with SO_LINGER, socket(7)).
 *
 * From Linux 6.16 on the kernel refuses descriptors (SO_PASSRIGHTS). Then is_safe is true, and
 * the functions are recv(2) and close(2). On an older kernel a message is peeked at before it is
 * read. A socket with descriptors in its queue is handed to a forked child that is then killed:
 * the end of a process does not block (inet_release() in net/ipv4/af_inet.c). SIGCHLD reports
 * the end of that child.
 */
#ifndef DAEMON_COMMON_DRAIN_H
#define DAEMON_COMMON_DRAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

/*
 * Reads one message of fd, a SOCK_SEQPACKET socket, without waiting. Returns its length, cut to
 * size; 0 at the end; -EBADMSG if it has descriptors (the message stays in the queue); or
 * -errno.
 */
must_check ssize_t drain_recv(int fd, bool is_safe, void *bytes, size_t size);

/* Closes *fd with the messages that are left in its queue. Sets *fd to -1. */
void drain_close(int *fd, bool is_safe);

#endif
