#include "lib/unwind/space/memos.h"

#include <stdlib.h>

void memos_fini(struct memos *m)
{
	for (size_t i = 0; m->by_tid && i < MEMO_THREADS; i++) {
		if (m->by_tid[i])
			free(m->by_tid[i]->frames);
		free(m->by_tid[i]);
	}
	free(m->by_tid);
	m->by_tid = NULL;
}

void memos_clear(struct memos *m)
{
	for (size_t i = 0; m->by_tid && i < MEMO_THREADS; i++)
		if (m->by_tid[i])
			m->by_tid[i]->n = 0;
}

struct memo *memos_get(struct memos *m, uint32_t tid)
{
	struct memo **slot;

	if (!m->by_tid)
		m->by_tid = calloc(MEMO_THREADS, sizeof(struct memo *));
	if (!m->by_tid)
		return NULL;
	slot = &m->by_tid[tid % MEMO_THREADS];
	if (!*slot)
		*slot = calloc(1, sizeof(**slot));
	if (*slot && (*slot)->tid != tid) {
		(*slot)->tid = tid;
		(*slot)->n = 0;
	}
	return *slot;
}
