#include "lib/capture/restart/pieces.h"

#include <stddef.h>
#include <sys/socket.h>

#include "lib/base/util.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/restart/syscalls.h"

/*
 * IOV_MAX_COUNT is the kernel's UIO_MAXIOV. IOV_PORTION is the number of iovecs that are read at
 * once.
 */
#define IOV_MAX_COUNT 1024
#define IOV_PORTION   32

/*
 * Finds the iovecs of sendmsg(2) without an address, and of recvmsg(2) without control messages.
 * Control messages that were sent went with the first part; received ones would be lost.
 */
static bool of_message(uint32_t tid, int pagemap_fd, uint64_t addr, bool sends, struct pieces *ret)
{
	struct msghdr m;

	if (memory_read(pagemap_fd, NULL, (int32_t)tid, addr, &m, sizeof(m), 0) !=
		    (ssize_t)sizeof(m) ||
	    (sends ? m.msg_name != NULL : m.msg_control != NULL))
		return false;
	*ret = (struct pieces){(uintptr_t)m.msg_iov, m.msg_iovlen};
	return true;
}

bool pieces_find(uint32_t tid, int pagemap_fd, const struct arch_regs *regs, struct pieces *ret)
{
	const struct syscall_rule *rule;
	long nr, result;

	if (!arch_interrupted_call(regs, &nr, &result))
		return false;
	rule = syscall_rule(nr);
	if (rule->asked == ASKED_MESSAGE)
		return of_message(tid, pagemap_fd, arch_argument(regs, 1),
				  rule->socket == SOCKET_SENDS, ret);
	*ret = (struct pieces){arch_argument(regs, 1), arch_argument(regs, 2)};
	return rule->asked == ASKED_IOVECS;
}

/*
 * Sets *ret to the part from byte `at` on of the iovec that contains this byte, and *ret_sum to the
 * bytes of all iovecs before it. Without such an iovec, *ret is empty and *ret_sum has the bytes of
 * all iovecs. Returns false if the iovecs cannot be read, or are invalid.
 */
static bool walk(uint32_t tid, int pagemap_fd, const struct pieces *pieces, uint64_t at,
		 struct iovec *ret, uint64_t *ret_sum)
{
	struct iovec portion[IOV_PORTION];
	uint64_t sum = 0;

	*ret = (struct iovec){0};
	if (pieces->n > IOV_MAX_COUNT)
		return false;
	for (uint64_t i = 0; i < pieces->n; i++) {
		const struct iovec *iov = &portion[i % IOV_PORTION];
		const size_t size = (size_t)min_u64(IOV_PORTION, pieces->n - i) * sizeof(*iov);

		if (i % IOV_PORTION == 0 &&
		    memory_read(pagemap_fd, NULL, (int32_t)tid, pieces->addr + i * sizeof(*iov),
				portion, size, 0) != (ssize_t)size)
			return false;
		if (iov->iov_len > PIECES_MAX_BYTES)
			return false;
		if (at < sum + iov->iov_len) {
			ret->iov_base = (uint8_t *)iov->iov_base + (at - sum);
			ret->iov_len = iov->iov_len - (size_t)(at - sum);
			break;
		}
		sum += iov->iov_len;
	}
	*ret_sum = sum;
	return true;
}

uint64_t pieces_sum(uint32_t tid, int pagemap_fd, const struct pieces *pieces)
{
	struct iovec none;
	uint64_t sum;

	if (!walk(tid, pagemap_fd, pieces, UINT64_MAX, &none, &sum))
		return 0;
	return min_u64(sum, PIECES_MAX_BYTES);
}

bool pieces_at(uint32_t tid, int pagemap_fd, const struct pieces *pieces, uint64_t at,
	       struct iovec *ret)
{
	uint64_t sum;

	return walk(tid, pagemap_fd, pieces, at, ret, &sum) && ret->iov_len > 0;
}
