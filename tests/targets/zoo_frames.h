/*
 * Frames of many kinds, each with the place in its depth that waits: a part of
 * zoo.h.
 */

static NOINLINE void with_aligned(int n)
{
	__attribute__((aligned(256))) volatile char room[512];

	ENTER();
	room[n & 511] = 1;
	wait_here();
	sink += (unsigned long)room[n & 511];
	LEAVE();
}

static NOINLINE void with_large(int n)
{
	volatile char room[200000];

	ENTER();
	room[n] = 1;
	with_aligned(n);
	sink += (unsigned long)room[n];
	LEAVE();
}

static NOINLINE void with_array(int n)
{
	volatile char room[n * 100 + 1];

	ENTER();
	room[n] = 1;
	with_large(n);
	sink += (unsigned long)room[n];
	LEAVE();
}

static NOINLINE void with_alloca(int n)
{
	volatile char *room = alloca((size_t)n * 333);

	ENTER();
	room[0] = 1;
	with_array(n);
	sink += (unsigned long)room[0];
	LEAVE();
}

/* Its arguments go through the stack: pushes before the call. */
static NOINLINE int many_arguments(int a, int b, int c, int d, int e, int f,
				   int g, int h, int i)
{
	ENTER();
	sink += (unsigned long)(a + b + c + d + e + f + g + h + i);
	with_alloca(a + i);
	LEAVE();
	return h;
}

static NOINLINE int variadic(int n, ...)
{
	va_list list;
	int sum;

	ENTER();
	va_start(list, n);
	sum = many_arguments(va_arg(list, int), 2, 3, 4, 5, 6, n, 8, 9);
	va_end(list);
	LEAVE();
	return sum;
}

static void frames(void)
{
	ENTER();
	variadic(3, 1, 2, 3);
	LEAVE();
}

static uintptr_t return_of_tail_caller;

static NOINLINE void tail_called(void)
{
	/* Optimized, it was jumped to and returns to its caller's caller. */
	if ((uintptr_t)__builtin_return_address(0) != return_of_tail_caller)
		push(return_of_tail_caller);
	ENTER();
	wait_here();
	LEAVE();
}

static NOINLINE void tail_caller(int n)
{
	return_of_tail_caller = (uintptr_t)__builtin_return_address(0);
	sink += (unsigned long)n;
	return n & 1 ? tail_called() : wait_here();
}

static void tail(void)
{
	ENTER();
	tail_caller((int)sink | 1);
	LEAVE();
}

static NOINLINE __attribute__((noreturn)) void never(void)
{
	ENTER();
	for (;;)
		wait_here();
}

/* The call is its last instruction: the return address is the next one's. */
static NOINLINE __attribute__((noreturn)) void last_call(void)
{
	ENTER();
	never();
}

static void noreturn(void)
{
	ENTER();
	last_call();
	LEAVE();
}

static NOINLINE unsigned long recurse(int n)
{
	unsigned long sum;

	ENTER();
	if (n == 0)
		wait_here();
	sum = n > 0 ? recurse(n - 1) : 0;
	LEAVE();
	return sum + sink;
}

static void deep(void)
{
	ENTER();
	recurse(1000);
	LEAVE();
}

static void deepest(void)
{
	ENTER();
	recurse(10000);
	LEAVE();
}

/* A part that is hardly ever run is put far away from the rest. */
static NOINLINE void hot_and_cold(int n)
{
	ENTER();
	for (int i = 0; i < 100; i++)
		sink += (unsigned long)i * (unsigned long)n;
	if (__builtin_expect(n == 1, 0)) {
		wait_here();
		sink++;
		LEAVE();
		return;
	}
	LEAVE();
}

static __attribute__((cold, noinline)) void unlikely(int n)
{
	ENTER();
	hot_and_cold(n);
	LEAVE();
}

static void split(void)
{
	ENTER();
	for (int i = 0; i < 50; i++)
		hot_and_cold(2);
	unlikely(1);
	LEAVE();
}

/* libc calls back. */

static int compare(const void *a, const void *b)
{
	ENTER();
	wait_here();
	LEAVE();
	return *(const char *)a - *(const char *)b;
}

static void callback(void)
{
	char text[] = "zoo";

	ENTER();
	qsort(text, 3, 1, compare);
	LEAVE();
}

static void at_exit(void)
{
	ENTER();
	wait_here();
	LEAVE();
}

static void exiting(void)
{
	ENTER();
	atexit(at_exit);
	exit(0);
}
