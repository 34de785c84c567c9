/*
 * Makes and maps pages: memory that the broker shares with another process. A child of the broker
 * writes its page, and the broker reads it, even after the child has died. A client (a program with
 * libsentry_profd) and the broker both write to their page (daemon/broker/control/client_page.h).
 */
#ifndef DAEMON_MSG_PAGE_H
#define DAEMON_MSG_PAGE_H

#include <stddef.h>

#include "lib/base/util.h"

/*
 * Makes a page of size bytes, all zeros. Stores its address in *ret_page, mapped for reading, and a
 * descriptor for the other process in *ret_fd. The caller owns both. The size is sealed, so that
 * the other process cannot shrink the page: reading a shrunk page raises SIGBUS. name is shown in
 * /proc/PID/maps. Returns 0 or -errno.
 */
must_check int page_new(const char *name, size_t size, const void **ret_page, int *ret_fd);
/* As page_new(), but mapped with this protection (mmap(2)) instead of PROT_READ. */
must_check int page_share(const char *name, size_t size, int protection, void **ret_page,
			  int *ret_fd);
/* Unmaps the page. page may be NULL. */
void page_free(const void *page, size_t size);

/*
 * Maps the page of fd, which page_new() or page_share() has made, for reading and writing in the
 * other process. The caller keeps fd, and unmaps the page by page_free(). Returns 0 or -errno.
 */
must_check int page_map(int fd, size_t size, void **ret_page);

#endif
