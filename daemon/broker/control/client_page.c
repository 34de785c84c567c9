#include "daemon/broker/control/client_page.h"

#include <string.h>
#include <sys/mman.h>

#include "daemon/msg/page.h"

/* The words of the page that a reader takes as one state, protected by sequence. */
#define SHOWN_WORDS (offsetof(struct protocol_page, beat) / sizeof(uint32_t))

int client_page_init(struct client_page *p, int *ret_fd)
{
	void *page;
	int r = page_share("sentry-profd", sizeof(*p->shared), PROT_READ | PROT_WRITE, &page,
			   ret_fd);

	*p = (struct client_page){.shared = r == 0 ? page : NULL};
	return r;
}

void client_page_fini(struct client_page *p)
{
	page_free(p->shared, sizeof(*p->shared));
	p->shared = NULL;
}

void client_page_show(struct client_page *p, const struct protocol_page *now)
{
	uint32_t *to = (uint32_t *)(void *)p->shared;
	uint32_t words[SHOWN_WORDS], sequence;

	if (memcmp(&p->shown.state, &now->state, sizeof(words) - sizeof(p->shown.sequence)) == 0)
		return;
	sequence = p->shown.sequence == 0 ? 1 : p->shown.sequence + 2;
	p->shown = *now;
	p->shown.sequence = sequence;
	memcpy(words, &p->shown, sizeof(words));
	__atomic_store_n(&to[0], words[0], __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (size_t i = 1; i < SHOWN_WORDS; i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&to[0], words[0] + 1, __ATOMIC_RELEASE);
}

void client_page_beat(struct client_page *p)
{
	__atomic_add_fetch(&p->shared->beat, 1, __ATOMIC_RELAXED);
}

void client_page_handled(struct client_page *p, uint32_t n_requests)
{
	__atomic_store_n(&p->shared->handled, n_requests, __ATOMIC_SEQ_CST);
}

void client_page_want(struct client_page *p, bool wants_open)
{
	__atomic_store_n(&p->shared->wants_open, wants_open, __ATOMIC_SEQ_CST);
}

bool client_page_has_open_spans(const struct client_page *p)
{
	return __atomic_load_n(&p->shared->spans_open, __ATOMIC_SEQ_CST) != 0;
}

bool client_page_had_spans(const struct client_page *p)
{
	return __atomic_load_n(&p->shared->is_traced, __ATOMIC_RELAXED) != 0;
}
