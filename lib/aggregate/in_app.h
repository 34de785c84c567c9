/*
 * Decides the member in_app of a frame: whether code belongs to the application or to a
 * library. Sentry shows and groups frames by in_app.
 *
 * The file of the code decides first. In a file of the application the symbol decides,
 * because Go, Rust and static linking put their libraries into the application's file.
 */
#ifndef LIB_AGGREGATE_IN_APP_H
#define LIB_AGGREGATE_IN_APP_H

#include <stdbool.h>

/* Patterns of paths, separated by spaces or tabs (glob_match_any()). "": none. Not NULL. */
struct in_app_rules {
	const char *include, *exclude;
};

struct in_app_code {
	const char *path;      /* path of the image; NULL: the code lies in no image */
	const char *main_path; /* path of the main executable */
	const char *symbol;    /* not demangled; NULL: no symbol covers the code */
	bool is_go;	       /* the image was built by Go's compiler */
	/*
	 * The image names a dynamic linker (PT_INTERP). A main executable that names none contains
	 * its libraries.
	 */
	bool has_interpreter;
};

/*
 * Returns true if the code is in_app. Code in no file, and in the vDSO ("[vdso]"), is not
 * in_app. Code in a file that rules->include matches is in_app; code in any other file
 * that rules->exclude matches is not. All other code is in_app, except:
 * - code in a file in the system's library directories that is not the main executable;
 * - Go's runtime and standard library, by the package's path in the symbol;
 * - Rust's std, core and alloc, by the crate in the symbol;
 * - in a main executable without a dynamic linker: functions of the C and C++
 *   libraries, by their names (lib/aggregate/library_names.h).
 */
bool in_app(const struct in_app_code *code, const struct in_app_rules *rules);

/*
 * Returns true if a Go symbol, such as "net/http.(*Server).Serve", belongs to the runtime
 * or the standard library. The first part of the package's path ("net") decides, because
 * Go reserves these first parts for the standard library.
 */
bool in_app_is_go_library(const char *symbol);

/*
 * Returns true if a demangled Rust name belongs to std, core or alloc: if its crate is one
 * of these. In an implementation ("<alloc::vec::Vec<T> as core::ops::Drop>::drop") the type
 * and the trait must each belong to one of these, or be primitive types, which have no
 * crate.
 */
bool in_app_is_rust_library(const char *name);

#endif
