#include "lib/client/page_copy.h"

#include <stddef.h>
#include <string.h>

#include "lib/client/connection.h"

/*
 * The daemon writes the page within about a microsecond. So many attempts fail only if the daemon
 * is preempted while it writes, which is very rare.
 */
#define ATTEMPTS_MAX 100

#define READ_WORDS (offsetof(struct protocol_page, beat) / sizeof(uint32_t))

static bool read_page(struct protocol_page *ret)
{
	const struct protocol_page *page = state_page();
	const uint32_t *from = (const void *)page;
	uint32_t words[READ_WORDS];

	for (int n = 0; n < ATTEMPTS_MAX; n++) {
		uint32_t sequence = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);

		for (size_t i = 0; i < READ_WORDS; i++)
			words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (sequence % 2 != 0 ||
		    __atomic_load_n(&page->sequence, __ATOMIC_RELAXED) != sequence)
			continue;
		memcpy(ret, words, sizeof(words));
		ret->profiler_id[PROTOCOL_ID_SIZE - 1] = '\0';
		return true;
	}
	return false;
}

static bool is_running(struct state *s, const struct protocol_page *page)
{
	if (!page->is_sampled)
		return false;
	/* A start has no effect in any other state. */
	if (page->state != PROTOCOL_STATE_PROFILING && page->state != PROTOCOL_STATE_STOPPED)
		return false;
	if (page->lifecycle == PROTOCOL_TRACE)
		return page->state == PROTOCOL_STATE_PROFILING || load(&s->spans) > 0;
	/* The daemon has not carried out the last command yet. */
	if (load(&s->n_sent) != load(&state_page()->handled))
		return load(&s->command) == COMMAND_START;
	return page->state == PROTOCOL_STATE_PROFILING;
}

bool page_copy_read(struct page_copy *ret)
{
	struct state *s = state_get();

	if (s == NULL)
		return false;
	connection_check_if_due(s);
	if (!load(&s->has_page) || !read_page(&ret->page))
		return false;
	ret->is_other_ns = load(&state_page()->is_other_ns);
	ret->is_running = is_running(s, &ret->page);
	return true;
}
