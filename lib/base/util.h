/*
 * Macros and small inline functions that all modules use. They do not allocate, log or keep state.
 */
#ifndef LIB_BASE_UTIL_H
#define LIB_BASE_UTIL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/*
 * must_check: the compiler warns if a caller ignores the result. printf_like(f, a): argument f,
 * counted from 1, is a format of printf(3) for the arguments from a on.
 */
#define must_check	  __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define array_size(a)	  (sizeof(a) / sizeof((a)[0]))

#define NS_PER_SEC UINT64_C(1000000000)
#define NS_PER_MS  UINT64_C(1000000)
#define NS_PER_US  UINT64_C(1000)

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Returns how long to wait before the next try, in ns, after this number of failures in a row: 0
 * after none, first_ns after one, and twice as long after each further failure. The wait is at most
 * longest_ns, and at most 2^16 * first_ns. first_ns must be below 2^48.
 */
static inline uint64_t backoff_ns(uint64_t failures, uint64_t first_ns, uint64_t longest_ns)
{
	if (failures == 0)
		return 0;
	return min_u64(first_ns << min_u64(failures - 1, 16), longest_ns);
}

/* Rounds n up to a multiple of align, a power of two. n + align - 1 must not overflow. */
static inline size_t align_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Closes *fd unless it is negative, and sets it to -1. Preserves errno. */
static inline void close_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

/*
 * Writes all n bytes, in several calls of write(2) if needed. Calls it again after EINTR. Returns
 * 0; or -errno of write(2), after which some of the bytes may be written.
 */
must_check static inline int write_all(int fd, const void *bytes, size_t n)
{
	const uint8_t *at = (const uint8_t *)bytes;

	while (n > 0) {
		ssize_t written = write(fd, at, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += written;
		n -= (size_t)written;
	}
	return 0;
}

/*
 * Writes what the stream out has buffered. Returns 0, or -errno; -EIO, too, if an earlier write to
 * out has failed, since stdio does not keep the errno of that write.
 */
must_check static inline int flush_stream(FILE *out)
{
	if (fflush(out) != 0)
		return -errno;
	return ferror(out) ? -EIO : 0;
}

#endif
