/*
 * Memory that the broker shares with one of its children, which writes it: the
 * broker reads what is there when the child has died. Or with clients, which
 * read what it writes (daemon/broker/control/client_page.h).
 */
#ifndef DAEMON_MSG_PAGE_H
#define DAEMON_MSG_PAGE_H

#include <stddef.h>

#include "lib/base/util.h"

/*
 * size bytes of zeros: *ret_page can be read, *ret_fd is for the child. Sealed
 * in its size: shrunk, it would be a SIGBUS for us who read it. name is shown
 * in /proc/PID/maps. Returns 0 or -errno.
 */
must_check int page_new(const char *name, size_t size, const void **ret_page, int *ret_fd);
/* The same, with another protection than PROT_READ: mmap(2). */
must_check int page_share(const char *name, size_t size, int protection, void **ret_page,
			  int *ret_fd);
/* Takes NULL. */
void page_free(const void *page, size_t size);

/* The child's end: to be written. */
must_check int page_map(int fd, size_t size, void **ret_page);

#endif
