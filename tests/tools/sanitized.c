/*
 * The default options of the sanitizers in executables that are built with them. They
 * are compiled in because the broker passes no ASAN_OPTIONS to its children.
 *
 * LeakSanitizer is off: at the end of a process it uses ptrace, which unwind and ship
 * may not call, and which would stop capture's threads. A fault ends a process by a
 * signal, as it does without sanitizers.
 */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1";
}

const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1:abort_on_error=1";
}
