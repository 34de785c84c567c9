// cflags: -O2
/*
 * argv[1] is a FIFO: a thread that the kernel makes for io_uring waits in
 * opening it, until somebody opens it to write. "opened RESULT" is said then, a
 * descriptor if all is well. Where there is no io_uring it says "none PID".
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>

#include "target.h"

int main(int argc, char **argv)
{
	struct io_uring_params p = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 1, &p);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	uint32_t *completed;
	uint8_t *ring, *done;

	if (argc < 2)
		return 2;
	if (fd < 0) {
		printf("none %d\n", (int)getpid());
		return 0;
	}
	ring = mmap(NULL, p.sq_off.array + sizeof(uint32_t),
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   IORING_OFF_SQES);
	done = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*cqe),
		    PROT_READ, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	if (ring == MAP_FAILED || sqe == MAP_FAILED || done == MAP_FAILED)
		return 1;
	completed = (uint32_t *)(void *)(done + p.cq_off.tail);
	cqe = (struct io_uring_cqe *)(void *)(done + p.cq_off.cqes);
	*sqe = (struct io_uring_sqe){
		.opcode = IORING_OP_OPENAT,
		.flags = IOSQE_ASYNC,
		.fd = AT_FDCWD,
		.addr = (uintptr_t)argv[1],
		.open_flags = O_RDONLY,
	};
	memset(ring + p.sq_off.array, 0, sizeof(uint32_t));
	__atomic_store_n((uint32_t *)(void *)(ring + p.sq_off.tail), 1,
			 __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0) != 1)
		return 1;
	ready(getpid());
	while (__atomic_load_n(completed, __ATOMIC_ACQUIRE) == 0)
		usleep(10000);
	printf("opened %d\n", cqe->res);
	fflush(stdout);
	for (;;)
		pause();
}
