#include "lib/client/state.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A child of fork(2) keeps these. */
static uint8_t *memory; /* struct state, then the daemon's page */
static uint32_t generations;
static int noted_fd = -1;
static struct stat noted; /* of noted_fd */

static size_t page_bytes(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 0 ? (size_t)size : 4096;
}

/* The size of struct state, rounded up to whole pages. */
static size_t state_bytes(void)
{
	const size_t page = page_bytes();

	return (sizeof(struct state) + page - 1) / page * page;
}

/* Returns false if the program has closed noted_fd, and opened another file with its number. */
static bool is_noted(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == noted.st_dev && st.st_ino == noted.st_ino;
}

/*
 * Runs in a child of fork(2). Closes the parent's connection: while the child holds it, the daemon
 * does not notice the parent's end. Clears the state, because a kernel without MADV_WIPEONFORK
 * (before 4.14, some sandboxes) has not done so.
 */
static void on_fork(void)
{
	const int fd = noted_fd, saved_errno = errno;

	noted_fd = -1;
	if (fd >= 0 && is_noted(fd))
		(void)close(fd);
	if (memory != NULL)
		memset(memory, 0, sizeof(struct state));
	errno = saved_errno;
}

static uint8_t *map_memory(void)
{
	const size_t size = state_bytes() + page_bytes();
	uint8_t *none = NULL;
	uint8_t *made =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return NULL;
	(void)madvise(made, state_bytes(), MADV_WIPEONFORK);
	if (!__atomic_compare_exchange_n(&memory, &none, made, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST)) {
		(void)munmap(made, size);
		return none;
	}
	(void)pthread_atfork(NULL, NULL, on_fork);
	return made;
}

/* The first call in a process; several threads may be here at once. */
static void set_generation(struct state *s)
{
	uint32_t none = 0;
	uint32_t mine = __atomic_add_fetch(&generations, 1, __ATOMIC_SEQ_CST);

	/*
	 * The counter has wrapped after 2^32 forks. 0 is not used, because it means an empty state.
	 */
	if (mine == 0)
		mine = 1;
	(void)__atomic_compare_exchange_n(&s->generation, &none, mine, false, __ATOMIC_SEQ_CST,
					  __ATOMIC_SEQ_CST);
}

struct state *state_get(void)
{
	uint8_t *m = load(&memory);
	struct state *s;

	if (m == NULL)
		m = map_memory();
	if (m == NULL)
		return NULL;
	s = (struct state *)(void *)m;
	if (load(&s->generation) == 0)
		set_generation(s);
	return s;
}

struct protocol_page *state_page(void)
{
	return (struct protocol_page *)(void *)(load(&memory) + state_bytes());
}

/* A single mmap(2) replaces the mapping, because other threads may read the page meanwhile. */
int state_map_page(int fd)
{
	const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *at =
		mmap(state_page(), page_bytes(), PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);

	/* cppcheck-suppress memleak ; the mapping is that of memory, which stays */
	return at == MAP_FAILED ? -errno : 0;
}

bool state_enter(struct state *s)
{
	int cancel;

	if (exchange(&s->is_busy, 1) != 0)
		return false;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	s->cancel = cancel;
	return true;
}

static void leave(struct state *s)
{
	int cancel = s->cancel;

	store(&s->is_busy, 0);
	(void)pthread_setcancelstate(cancel, &cancel);
}

static void do_work(struct state *s, void (*work)(struct state *s))
{
	const int saved = errno;

	while (exchange(&s->is_due, 0))
		work(s);
	errno = saved;
}

void state_leave(struct state *s, void (*work)(struct state *s))
{
	leave(s);
	while (load(&s->is_due) && state_enter(s)) {
		do_work(s, work);
		leave(s);
	}
}

void state_do_work(struct state *s, void (*work)(struct state *s))
{
	store(&s->is_due, 1);
	while (load(&s->is_due) && state_enter(s)) {
		do_work(s, work);
		leave(s);
	}
}

void state_close_on_fork(int fd)
{
	noted_fd = fd >= 0 && fstat(fd, &noted) == 0 ? fd : -1;
}
