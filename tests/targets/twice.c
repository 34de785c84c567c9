/*
 * Has the C library in memory twice, the second time by dlmopen(3): two
 * threads wait in callbacks of qsort(), each through another one's.
 */
#include <dlfcn.h>

#include "target.h"

typedef void (*sort_fn)(void *, size_t, size_t,
			int (*)(const void *, const void *));

static pthread_barrier_t waiting;
static volatile int forever = 1;

static int compare(const void *a, const void *b)
{
	const struct timespec t = {1, 0};

	pthread_barrier_wait(&waiting);
	while (forever)
		nanosleep(&t, NULL);
	return *(const int *)a - *(const int *)b;
}

static void *sort(void *arg)
{
	int v[] = {2, 1};

	(*(sort_fn *)arg)(v, 2, sizeof(v[0]), compare);
	return NULL;
}

int main(void)
{
	void *other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	sort_fn sorts[2] = {qsort, NULL};
	pthread_t threads[2];

	if (!other)
		return 77;
	sorts[1] = (sort_fn)dlsym(other, "qsort");
	if (!sorts[1] || sorts[1] == sorts[0])
		return 1;
	pthread_barrier_init(&waiting, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, sort, &sorts[i]);
	pthread_barrier_wait(&waiting);
	ready(getpid());
	pthread_join(threads[0], NULL);
	return 0;
}
