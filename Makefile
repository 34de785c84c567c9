# sentry-profd: builds with GNU make, into build/.
#
#   make            the seven executables and the client library
#   make demo       installs missing packages, builds, profiles a real program
#   make check      installs missing packages, builds, runs every test
#                   (make check T=ring: tests whose names contain "ring")
#   make bench      installs missing packages, builds, measures (T=, SECONDS=)
#   make check-sanitized  the integration tests with sanitized executables
#   make storm      loads drawn from a seed, a minute each (T=soak HOURS=2, SECONDS=, SEED=)
#   make analyze    clang-tidy, cppcheck and gcc -fanalyzer (in make check, too)
#   make valgrind   the unit tests under valgrind (make valgrind T=ring)
#   make fuzz       every parser with random input (make fuzz T=cfi SECONDS=600)
#   make install    into $(DESTDIR)$(PREFIX); make uninstall
#   make deb        a Debian package, build/sentry-profd_*.deb
#   make dist       the sources of the last commit, build/sentry-profd-*.tar.gz
#   make check-pictures  installs Chromium, npm and other tools, tests the page in a
#                   browser, the export formats in their own programs, and that a
#                   profiled Chromium writes its crash reports
#   make check-package  installs the package in a new Debian, booted for the test
#   V=1 shows the commands, WERROR=1 (the default if CI=true) makes warnings errors.
#
# Reading this file runs no compiler and needs no library: make check installs them.
VERSION = 0.1.0
PREFIX = /usr/local
DESTDIR =
SYSCONFDIR = /etc
SBINDIR = $(PREFIX)/sbin
BINDIR = $(PREFIX)/bin
LIBEXECDIR = $(PREFIX)/libexec/sentry-profd
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR = $(PREFIX)/share/man
DOCDIR = $(PREFIX)/share/doc/sentry-profd
# Directories of bash, zsh and fish for command completion.
BASHDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d

# ?= would keep make's own default (cc).
ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ($(origin CXX),default)
CXX = g++
endif
AR ?= ar
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
INSTALL ?= install
B = build

CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wformat=2 \
	-Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings \
	-Wundef -Wvla -Wswitch-enum -Wimplicit-fallthrough -Wnull-dereference
HARDENING = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
	-fstack-clash-protection -fPIE
MACHINE ?= $(shell uname -m)
ifeq ($(MACHINE),x86_64)
HARDENING += -fcf-protection
endif
ifeq ($(CI),true)
WERROR ?= 1
endif
ifdef WERROR
WARNINGS += -Werror
endif
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DSENTRY_PROFD_VERSION='"$(VERSION)"' \
	-I. $(WARNINGS) $(HARDENING) $(CFLAGS)
# Where the broker finds the other executables if they are not beside it.
DAEMON_CFLAGS = -DLIBEXECDIR='"$(LIBEXECDIR)"' -DBINDIR='"$(BINDIR)"'
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed \
	$(LDFLAGS)

ifndef V
Q = @
say = @echo "  $(1)	$(2)";
endif

pkg = $(shell $(PKG_CONFIG) --libs $(1))

# One archive per directory, or per directory with its subdirectories; an executable
# links the objects that it calls.
lib_objs = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(1))))
ARCHIVES = base capture unwind aggregate ship client proto import export \
	msg common config process
archives = $(foreach a,$(1),$(B)/$(a).a)
dir_base = lib/base
dir_capture = lib/capture lib/capture/*
dir_unwind = lib/unwind lib/unwind/*
dir_aggregate = lib/aggregate
dir_ship = lib/ship
dir_client = lib/client
dir_proto = proto
dir_import = proto/import
dir_export = proto/export proto/export/html
dir_msg = daemon/msg
dir_common = daemon/common
dir_config = daemon/config
dir_process = daemon/process

EXES = sentry-profd sentry-profd-capture sentry-profd-unwind \
	sentry-profd-ship sentry-profd-oracle sentry-profd-metrics sentry-profctl


# The programs. Each is one folder of daemon/ with everything below it, and links what
# it calls of the shared folders and of lib/. The link table of docs/ARCHITECTURE.md,
# checked by tests/arch, lists the external libraries.
sentry-profd_DIR = daemon/broker
sentry-profd_LIB = config process common msg capture unwind proto base
sentry-profd_PKG = inih
sentry-profd-capture_DIR = daemon/capture
sentry-profd-capture_LIB = process common msg capture base
sentry-profd-capture_PKG =
sentry-profd-unwind_DIR = daemon/unwind
sentry-profd-unwind_LIB = common msg aggregate unwind base proto
sentry-profd-unwind_PKG = libdw libelf liblzma libzstd jansson libseccomp
# An archive without a pkg-config file.
sentry-profd-unwind_LIBS = -liberty
sentry-profd-ship_DIR = daemon/ship
sentry-profd-ship_LIB = common msg ship proto base
sentry-profd-ship_PKG = libcurl zlib libzstd jansson libseccomp
# Other unwinders, for comparison: they read a target's files while they trace it.
sentry-profd-oracle_DIR = daemon/oracle
sentry-profd-oracle_LIB = process common msg capture unwind base
sentry-profd-oracle_PKG = libdw libelf liblzma libzstd libunwind-ptrace
sentry-profd-oracle_LIBS = -liberty
# Serves HTTP, and asks the daemon as sentry-profctl does.
sentry-profd-metrics_DIR = daemon/metrics
sentry-profd-metrics_LIB = process common msg base
sentry-profd-metrics_PKG = libmicrohttpd
sentry-profctl_DIR = daemon/ctl
sentry-profctl_LIB = config process common msg export import ship aggregate unwind proto base
sentry-profctl_PKG = jansson zlib libprotobuf-c ncursesw
sentry-profctl_LIBS = -liberty

# An additional object of each executable: the options of the sanitizers.
EXE_EXTRA =

BINS = $(EXES:%=$(B)/%)
ALL_OBJS =

all: $(BINS)
	@:

executables: $(BINS)
	@:

# A file whose time changes with the text of a variable, so that a change of flags
# rebuilds what was built with other flags.
define stamp_rules
$(B)/$(1): FORCE
	@mkdir -p $$(@D)
	@echo '$(subst ','\'',$(2))' | cmp -s - $$@ || \
		echo '$(subst ','\'',$(2))' > $$@
endef
$(eval $(call stamp_rules,flags,$(CC) $(ALL_CFLAGS)))
$(eval $(call stamp_rules,daemon-flags,$(DAEMON_CFLAGS)))

define archive_rules
$(B)/$(1).a: $(call lib_objs,$(dir_$(1)))
ALL_OBJS += $(call lib_objs,$(dir_$(1)))
endef
$(foreach a,$(ARCHIVES),$(eval $(call archive_rules,$(a))))

$(B)/%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Function names of the build machine's C and C++ libraries, in lib/aggregate's
# archive. An update of a library does not rebuild them.
NM ?= nm
$(B)/library_names.c: lib/aggregate/library_names.sh $(B)/flags
	$(call say,GEN,$@)
	$(Q)CC='$(CC)' CXX='$(CXX)' NM='$(NM)' sh $< >$@.new && mv $@.new $@
$(B)/aggregate.a: $(B)/obj/library_names.o
ALL_OBJS += $(B)/obj/library_names.o

# The pprof format, generated by protoc-c, in the archive of proto/export/.
PROTOC_C ?= protoc-c
GENERATED = $(B)/generated
$(GENERATED)/pprof.pb-c.c $(GENERATED)/pprof.pb-c.h &: proto/export/pprof.proto
	@mkdir -p $(@D)
	$(call say,GEN,$(GENERATED)/pprof.pb-c.c)
	$(Q)$(PROTOC_C) --c_out=$(GENERATED) -Iproto/export $<
$(B)/obj/pprof.pb-c.o: $(GENERATED)/pprof.pb-c.c Makefile $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -I$(GENERATED) -MMD -MP -c -o $@ $<
$(B)/obj/proto/export/pprof.o: $(GENERATED)/pprof.pb-c.h
$(B)/obj/proto/export/pprof.o: ALL_CFLAGS += -I$(GENERATED)
$(B)/export.a: $(B)/obj/pprof.pb-c.o
ALL_OBJS += $(B)/obj/pprof.pb-c.o

# The page of sentry-profctl convert, in the archive of proto/export.
PAGE = $(filter-out %.c %.h,$(wildcard proto/export/html/*))
$(B)/html_page.c: $(PAGE)
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)sh proto/export/html/embed.sh >$@.new && mv $@.new $@
$(B)/export.a: $(B)/obj/html_page.o
ALL_OBJS += $(B)/obj/html_page.o

$(B)/obj/library_names.o $(B)/obj/html_page.o: $(B)/obj/%.o: $(B)/%.c Makefile \
		$(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The seccomp filters of capture, made on the build machine for MACHINE.
HOSTCC ?= cc
PRINT_FILTER = daemon/capture/filter/print_filter.c
$(B)/print_filter: $(PRINT_FILTER) daemon/common/sandbox.c daemon/common/landlock.c \
		daemon/common/sandbox.h daemon/common/landlock.h lib/base/util.h Makefile
	@mkdir -p $(@D)
	$(call say,HOSTCC,$@)
	$(Q)$(HOSTCC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -I. -o $@ \
		$(filter %.c,$^) -lseccomp
$(GENERATED)/capture_filter.h: $(B)/print_filter Makefile $(B)/flags
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$< $(MACHINE) >$@.new && mv $@.new $@
$(B)/obj/daemon/capture/filter.o: $(GENERATED)/capture_filter.h
$(B)/obj/daemon/capture/filter.o: ALL_CFLAGS += -I$(GENERATED)

# The objects of a program's folder.
objects = $(patsubst %.c,$(B)/obj/%.o,$(filter-out $(PRINT_FILTER), \
	$(wildcard $(1)/*.c $(1)/*/*.c)))

define exe_rules
$(1)_OBJ = $$(call objects,$$($(1)_DIR))
ALL_OBJS += $$($(1)_OBJ)
$(B)/$(1): $$($(1)_OBJ) $$(call archives,$$($(1)_LIB))
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$(if $$($(1)_PKG),$$(call pkg,$$($(1)_PKG))) $$($(1)_LIBS)
$(B)/$(1): $$(EXE_EXTRA)
endef
$(foreach e,$(EXES),$(eval $(call exe_rules,$(e))))

# The library that targets link, shared and static. It exports the functions of its
# header only.
SOVERSION = 0
CLIENT_OBJS = $(call lib_objs,lib/client)
CLIENT_SO = $(B)/libsentry_profd.so
CLIENT_LIBRARY = $(CLIENT_SO) $(B)/libsentry_profd.a $(B)/sentry_profd.pc
$(CLIENT_OBJS): ALL_CFLAGS += -fPIC -fvisibility=hidden
all: $(CLIENT_LIBRARY)

$(CLIENT_SO): $(CLIENT_OBJS) lib/client/sentry_profd.map
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -o $@ $(CLIENT_OBJS) \
		-Wl,-soname,libsentry_profd.so.$(SOVERSION) \
		-Wl,--version-script,lib/client/sentry_profd.map \
		-Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed $(LDFLAGS)
	$(Q)ln -sf libsentry_profd.so $@.$(SOVERSION)

# One object, so that names that its files share are not visible outside.
$(B)/libsentry_profd.a: $(CLIENT_OBJS)
	$(call say,AR,$@)
	$(Q)$(LD) -r -o $(B)/obj/lib/client/sentry_profd.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/obj/lib/client/sentry_profd.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(B)/obj/lib/client/sentry_profd.o

$(eval $(call stamp_rules,places,$(VERSION) $(PREFIX) $(LIBDIR) $(INCLUDEDIR)))
$(B)/sentry_profd.pc: lib/client/sentry_profd.pc.in $(B)/places
	$(Q)sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' \
		-e 's,@INCLUDEDIR@,$(INCLUDEDIR),' \
		-e 's,@VERSION@,$(VERSION),' $< >$@

DAEMON_OBJS = $(sort $(filter $(B)/obj/daemon/%,$(ALL_OBJS)))
$(DAEMON_OBJS): $(B)/daemon-flags
$(DAEMON_OBJS): ALL_CFLAGS += $(DAEMON_CFLAGS)

$(B)/obj/%.o: %.c Makefile $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Unit tests: one program for each tests/unit/DIR/check_*.c. It links only what its
# directory may use, so that a broken directory does not break the tests of another.
unit_base_LIB = base
unit_capture_OBJ = $(patsubst %,$(B)/obj/tests/unit/capture/%.o, \
	live live_wait)
unit_capture_LIB = capture base
unit_unwind_OBJ = $(patsubst %,$(B)/obj/tests/%.o, \
	fuzz/fuzz unit/unwind/made_up unit/unwind/record) \
	$(B)/obj/daemon/oracle/oracle.o
unit_unwind_LIB = unwind base
unit_unwind_PKG = libdw libelf liblzma libzstd libunwind-ptrace
unit_unwind_LIBS = -liberty
unit_aggregate_OBJ = $(B)/obj/tests/unit/aggregate/fake_unwind.o
unit_aggregate_LIB = aggregate base proto
unit_aggregate_PKG = jansson
unit_proto_LIB = proto base
unit_proto_PKG = jansson
unit_import_LIB = import proto base
unit_import_PKG = jansson
unit_export_LIB = export import ship proto base
unit_export_PKG = jansson zlib libprotobuf-c
unit_client_OBJ = $(patsubst %,$(B)/obj/tests/unit/client/%.o, \
	fake_clock fake_daemon)
unit_client_LIB = client base
unit_client_PKG = jansson
unit_ship_LIB = ship proto base
unit_ship_PKG = libcurl zlib libzstd jansson
# All of daemon/ except the main files of the programs.
unit_daemon_OBJ = $(filter-out %/main.o $(B)/obj/daemon/oracle/%,$(DAEMON_OBJS)) \
	$(unit_capture_OBJ)
unit_daemon_LIB = export import aggregate unwind capture ship proto base
unit_daemon_PKG = libdw libelf liblzma libzstd jansson libcurl \
	zlib libseccomp inih libprotobuf-c ncursesw
unit_daemon_LIBS = -liberty

UNIT_SOURCES = $(wildcard $(addsuffix /check_*.c,tests/unit/* tests/unit/*/* \
	tests/unit/*/*/*))
UNIT_DIRS = $(sort $(patsubst tests/unit/%/,%,$(dir $(UNIT_SOURCES))))
# One of check_cpu_*.c is for the other processor: AARCH64_CHECKS.
OTHER_ARCH = $(if $(filter aarch64,$(MACHINE)),x86_64,aarch64)
CHECKS = $(filter-out %/check_cpu_$(OTHER_ARCH), \
	$(UNIT_SOURCES:tests/unit/%.c=$(B)/tests/%))

# A directory, and its first part, which says what it may use.
define unit_rules
$(B)/tests/$(1)/%: $(B)/obj/tests/unit/$(1)/%.o $(B)/obj/tests/unit/main.o \
		$(unit_$(2)_OBJ) $(call archives,$(unit_$(2)_LIB))
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$(call pkg,check $(unit_$(2)_PKG)) $(unit_$(2)_LIBS)
endef
$(foreach d,$(UNIT_DIRS),$(eval $(call unit_rules,$(d),$(firstword $(subst /, ,$(d))))))

# This test starts the process that it tests.
$(B)/tests/ship/check_process $(B)/tests/ship/check_process_messages: | $(B)/sentry-profd-ship

# Programs that the tests profile: tests/targets/*.c and *.cc. A line "// cflags: ..."
# in a source adds flags, at the end of the command so that they may name libraries;
# "// cc: ..." names another compiler.
TARGETS = $(patsubst tests/targets/%.c,$(B)/targets/%,$(wildcard tests/targets/*.c)) \
	$(patsubst tests/targets/%.cc,$(B)/targets/%,$(wildcard tests/targets/*.cc))
TARGET_HEADERS = $(wildcard tests/targets/*.h)
target_flags = $$(sed -n 's,^// cflags: ,,p' $<)
target_cc = $$(sed -n 's,^// cc: ,,p' $< | grep . || echo $(CC))

$(B)/targets/%: tests/targets/%.c $(TARGET_HEADERS) Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(target_cc) -std=gnu11 -D_GNU_SOURCE -O2 -g -pthread -o $@ $< \
		$(target_flags)

$(B)/targets/%: tests/targets/%.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -pthread -o $@ $< $(target_flags)

# This test reads programs with sanitizers.
$(B)/tests/unwind/elf/check_leak_runtime: | $(filter $(B)/targets/leaks_%,$(TARGETS))

# The programs that make bench compares with, and its target.
BENCH = $(patsubst %,$(B)/bench/%,target bare near naive unwind first outage parse)
target_SRC = target gaps waits
bare_SRC = bare tracer
near_SRC = near tracer
naive_SRC = naive tracer
naive_PKG = libunwind-ptrace
unwind_SRC = unwind recorded beside others
unwind_LIB = aggregate unwind ship proto
unwind_PKG = libunwind-ptrace libdw libelf liblzma libzstd jansson zlib
unwind_LIBS = -liberty
first_SRC = first recorded others
first_LIB = unwind
first_PKG = libunwind-ptrace libdw libelf liblzma libzstd
first_LIBS = -liberty
BENCH_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/bench/*.c))
ALL_OBJS += $(BENCH_OBJS)

outage_SRC = outage
outage_LIB = ship
parse_SRC = parse
parse_PKG = jansson

define bench_rules
$(B)/bench/$(1): $$($(1)_SRC:%=$(B)/obj/tests/bench/%.o) \
		$$(call archives,$$($(1)_LIB) capture base)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -pthread -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$($(1)_LIBS) $$(if $$($(1)_PKG),$$(call pkg,$$($(1)_PKG)))
endef
$(foreach b,target bare near naive unwind first outage parse,$(eval $(call bench_rules,$(b))))

# Profiles for the tests of the page, and the packages that these and test_foreign.js
# need.
PICTURES = $(B)/pictures
ALL_OBJS += $(B)/obj/tests/pictures/make_page.o
$(PICTURES)/make_page: $(B)/obj/tests/pictures/make_page.o \
		$(call archives,export import proto base)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) $(call pkg,$(unit_export_PKG))
page_known = known
page_two = two
page_compare = compare
page_few = many 10000 10 5 html
page_many = many 1000000 100 50 html
page_long = many 1000000 10 480 html
$(PICTURES)/%.html: $(PICTURES)/make_page
	$(call say,PAGE,$@)
	$(Q)$< $(page_$*) >$@
$(PICTURES)/many.json: $(PICTURES)/make_page
	$(call say,PAGE,$@)
	$(Q)$< $(page_many:html=json) >$@
NPM_FILES = $(patsubst %,tests/pictures/%,package.json package-lock.json .npmrc)
$(PICTURES)/node_modules: $(NPM_FILES)
	@mkdir -p $(@D)
	$(call say,NPM,$@)
	$(Q)cp $(NPM_FILES) $(@D) && cd $(@D) && \
		npm ci --no-audit --no-fund --loglevel=error && touch node_modules
pictures: executables $(B)/targets/shares $(PICTURES)/node_modules $(PICTURES)/many.json \
		$(patsubst %,$(PICTURES)/%.html,known two compare few many long)
	@:

# Comparisons with other unwinders at random stops, and step by step through a turn of
# a program; and the recorder of the samples in tests/golden/stacks.
ORACLE = $(patsubst %,$(B)/oracle/%,differ record steps births)
ORACLE_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/oracle/*.c))
ALL_OBJS += $(ORACLE_OBJS)
$(ORACLE): $(B)/oracle/%: $(B)/obj/tests/oracle/%.o \
		$(B)/obj/tests/oracle/thread.o \
		$(filter-out %/main.o,$(sentry-profd-oracle_OBJ)) \
		$(call archives,$(sentry-profd-oracle_LIB))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) \
		$(call pkg,$(sentry-profd-oracle_PKG) jansson) $(sentry-profd-oracle_LIBS)

# Fuzz targets, tests/fuzz/fuzz_NAME.c: make check replays their corpus under the
# sanitizers, make fuzz runs them with clang's libFuzzer.
FUZZ = $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAIN = $(B)/obj/tests/fuzz/replay.o
FUZZ_LDFLAGS =
FUZZ_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/fuzz/*.c))
ALL_OBJS += $(FUZZ_OBJS)
# These parsers belong to programs, not to a library.
$(B)/fuzz/control: $(B)/obj/daemon/broker/control/control_message.o
$(B)/fuzz/symbolized: $(B)/obj/daemon/msg/symbolized.o $(B)/obj/lib/aggregate/names.o
# The whole broker.
$(B)/fuzz/messages: $(filter-out %/main.o,$(sentry-profd_OBJ)) $(call lib_objs,daemon/msg) \
		$(B)/obj/lib/capture/counters.o
$(B)/fuzz/%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/fuzz.o \
		$(FUZZ_MAIN) $(call archives,config process common \
		unwind export import ship proto base)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(FUZZ_LDFLAGS) -o $@ $(filter %.o,$^) \
		$(filter %.a,$^) $(ALL_LDFLAGS) \
		$(call pkg,$(unit_unwind_PKG) $(unit_ship_PKG) inih libprotobuf-c) \
		$(unit_unwind_LIBS)

# aarch64. Everything is compiled for it, except files that need libunwind's headers
# for it: clang is a cross compiler, libc6-dev-arm64-cross has the C library's headers,
# and the headers of other libraries are the same. Its recorded samples are unwound
# here.
AARCH64_OBJS = $(filter-out $(B)/obj/daemon/oracle/%,$(DAEMON_OBJS)) \
	$(foreach a,$(ARCHIVES),$(call lib_objs,$(dir_$(a))))
aarch64-objs: $(AARCH64_OBJS)
	@:
AARCH64_CC = clang --target=aarch64-linux-gnu -Qunused-arguments \
	-isystem /usr/aarch64-linux-gnu/include -idirafter /usr/include \
	-idirafter /usr/include/x86_64-linux-gnu
AARCH64_CHECKS = $(addprefix $(B)/tests/unwind/, \
	aarch64/check_cpu_aarch64 check_recorded dwarf/check_rule)

aarch64-checks: $(AARCH64_CHECKS)
	@:

built: $(BINS) $(CLIENT_LIBRARY) $(CHECKS) $(TARGETS) $(BENCH) $(ORACLE)
	@:

unit: $(CHECKS) $(TARGETS)
	$(Q)status=0; for t in $(CHECKS); do $$t || status=1; done; exit $$status

# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer.
SANITIZE = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
# Left out: tests that measure memory (the sanitizer's would count), that interrupt
# other programs thousands of times (minutes with it), and that end threads by the bare
# system call (it gets confused).
NO_ASAN = $(B)/tests/aggregate/check_bulk $(B)/tests/capture/restart/check_repair \
	$(B)/tests/capture/restart/check_resume $(B)/tests/client/check_calls \
	$(B)/tests/daemon/unwind/check_limits \
	$(B)/tests/unwind/image/check_cache
ASAN_CHECKS = $(sort $(filter-out $(NO_ASAN),$(CHECKS)))
asan: $(ASAN_CHECKS) $(FUZZ)
	@:

# Static analysis of daemon/, lib/ and proto/. Each file is checked by clang-tidy (.clang-tidy),
# with clang's warnings, and by the analyzer of gcc. ANALYSIS is deep or shallow: clang's analyzer
# follows fewer paths and calls, and takes a tenth of the time.
ANALYSIS = deep
TIDY_FLAGS = -Xclang -analyzer-config -Xclang mode=$(ANALYSIS)
# gcc 12 does not see a pointer that a list or a caller's struct keeps. LeakSanitizer and
# valgrind find leaks in the unit tests.
GCC_ANALYZER = -fanalyzer -Wno-analyzer-malloc-leak
CHECKED = $(B)/checked/$(ANALYSIS)
PRODUCT_OBJS := $(sort $(filter $(addprefix $(B)/obj/,daemon/% lib/% proto/%),$(ALL_OBJS)))
# gcc 12 takes an element of an array for uninitialized after another was written by an index.
$(CHECKED)/lib/unwind/rules/expr.ok: GCC_ANALYZER += -Wno-analyzer-use-of-uninitialized-value

$(CHECKED)/%.ok: %.c .clang-tidy Makefile $(B)/flags \
		| $(GENERATED)/pprof.pb-c.h $(GENERATED)/capture_filter.h
	@mkdir -p $(@D)
	$(call say,CHECK,$<)
	$(Q)clang-tidy --quiet $< -- $(ALL_CFLAGS) $(DAEMON_CFLAGS) -I$(GENERATED) \
		$(TIDY_FLAGS) 2>$(@:.ok=.err) || { cat $(@:.ok=.err); exit 1; }
	$(Q)$(CC) $(ALL_CFLAGS) -Werror $(DAEMON_CFLAGS) -I$(GENERATED) $(GCC_ANALYZER) \
		-MMD -MP -MF $(@:.ok=.d) -MT $@ -S -o /dev/null $<
	@touch $@

# Left out: severities style, performance and portability. cppcheck has no description of jansson.
$(B)/checked/cppcheck.ok: $(PRODUCT_OBJS:$(B)/obj/%.o=%.c) Makefile \
		| $(GENERATED)/pprof.pb-c.h $(GENERATED)/capture_filter.h
	@mkdir -p $(@D)
	$(call say,CPPCHECK,daemon lib proto)
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning \
		--std=c11 --library=posix,gnu -I. $(DAEMON_CFLAGS) \
		-D_GNU_SOURCE -D__linux__ -D__$(MACHINE)__ -D__LP64__ -D__GNUC__=12 \
		-DSENTRY_PROFD_VERSION='"$(VERSION)"' \
		'-Djson_array_foreach(a,i,v)=while ((v = json_array_get(a, i = 0)))' \
		$(filter %.c,$^)
	@touch $@

analyzed: $(B)/checked/cppcheck.ok $(PRODUCT_OBJS:$(B)/obj/%.o=$(CHECKED)/%.ok)
	@:

analyze:
	$(Q)BUILD=$(B) tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) analyzed

# The unit tests under valgrind, which finds reads of uninitialised memory: AddressSanitizer does
# not. Left out: NO_ASAN; tests that trace (ship/check_spool, too) or hang there (check_child,
# check_hints, check_outbox); tests of what valgrind 3.19 lacks: landlock, pidfd_open(2),
# openat2(2), userfaultfd(2), and all that capget(2) writes; and check_sandbox, which calls
# execve(2) with a wrong pointer.
VALGRIND = valgrind -q --error-exitcode=1 --leak-check=full --show-leak-kinds=definite \
	--errors-for-leak-kinds=definite
NO_VALGRIND = $(NO_ASAN) $(B)/tests/capture/% $(B)/tests/ship/check_spool $(addprefix $(B)/tests/daemon/, \
	broker/discovery/check_identify broker/files/check_files \
	broker/targets/check_attach broker/targets/check_target_usage capture/% \
	broker/children/check_child common/check_privileges common/check_sandbox \
	process/check_act_as process/check_process_root process/check_threads \
	ship/check_outbox ship/check_spool_dirs unwind/check_hints)
VALGRIND_CHECKS = $(filter-out $(NO_VALGRIND),$(CHECKS))
$(B)/checked/valgrind/%.ok: $(B)/tests/%
	@mkdir -p $(@D)
	$(call say,VALGRIND,$<)
	$(Q)$(VALGRIND) $< >$(@:.ok=.log) 2>&1 || { cat $(@:.ok=.log); exit 1; }
	@touch $@
valgrinded: $(foreach t,$(VALGRIND_CHECKS:$(B)/tests/%=$(B)/checked/valgrind/%.ok), \
		$(if $(or $(findstring $(T),$(t)),$(if $(T),,all)),$(t)))
	@:
valgrind: $(TARGETS)
	$(Q)BUILD=$(B) tests/tools/deps.sh analyze
	$(Q)$(MAKE) --no-print-directory $(JOBS) -k valgrinded

# The sanitized executables: the variables of the sub-make. The integration tests take
# everything else from the normal build.
SANITIZED = B=$(B)/asan CFLAGS='$(SANITIZE)' \
	EXE_EXTRA=$(B)/asan/obj/tests/tools/sanitized.o
NORMAL = targets bench debian libsentry_profd.so libsentry_profd.so.$(SOVERSION) \
	libsentry_profd.a
define sanitized
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(1) $(SANITIZED)
	$(Q)for n in $(NORMAL); do \
		rm -rf $(B)/asan/$$n && ln -s ../$$n $(B)/asan/$$n || exit; \
	done
endef

# make check installs its tools before it builds, so it calls itself; it uses all
# processors unless -j sets another number.
SCRIPTS = $(sort $(wildcard tests/arch/test_*.py tests/integration/test_*.py \
	tests/integration/test_*.sh))
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
T =

# tests/integration/sanitized.py names the tests that are left out. Tests in shell
# are about installation and output; test_differ runs no daemon.
SANITIZED_SCRIPTS = $(addprefix $(B)/asan:, $(sort $(filter-out \
	%/test_differ.py,$(wildcard tests/integration/test_*.py))) \
	tests/storm/storm.py)

check:
	$(Q)BUILD=$(B) tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) built
	$(Q)$(MAKE) --no-print-directory $(JOBS) analyzed ANALYSIS=shallow
	$(call sanitized,asan executables)
	$(Q)$(MAKE) --no-print-directory $(JOBS) aarch64-objs B=$(B)/aarch64 \
		CC='$(AARCH64_CC)' MACHINE=aarch64
	$(Q)$(MAKE) --no-print-directory $(JOBS) aarch64-checks \
		B=$(B)/for-aarch64 CFLAGS='$(SANITIZE) -DUNWIND_FOR_AARCH64'
	$(Q)BUILD=$(B) tests/tools/run_tests.py '$(T)' $(sort $(CHECKS)) \
		$(ASAN_CHECKS:$(B)/%=$(B)/asan/%) \
		$(AARCH64_CHECKS:$(B)/%=$(B)/for-aarch64/%) \
		$(FUZZ:$(B)/%=$(B)/asan/%) $(SCRIPTS) $(SANITIZED_SCRIPTS)
	$(Q)tests/tools/lines.py

# The page in a browser, and the export formats in their own programs. Screenshots are
# in build/pictures.
check-pictures:
	$(Q)tests/tools/deps.sh pictures
	$(Q)$(MAKE) --no-print-directory $(JOBS) pictures
	$(Q)status=0; for t in tests/pictures/test_*.js; do \
		BUILD=$(B) NODE_PATH=$(abspath $(PICTURES))/node_modules node $$t || \
		status=1; done; \
	for t in tests/pictures/test_*.py; do BUILD=$(B) $$t || status=1; done; \
	exit $$status

check-sanitized:
	$(Q)BUILD=$(B) tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) built
	$(call sanitized,executables fuzzers)
	$(Q)BUILD=$(B) tests/tools/run_tests.py '$(T)' $(SANITIZED_SCRIPTS)

# Each storm whose name contains T, for SECONDS, or for HOURS. Alone, these storms have
# ordinary executables: sanitized ones use other memory, and other moments.
ORDINARY = kills soak spool
storm: SECONDS = 60
storm: HOURS =
storm:
	$(Q)tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BINS) $(TARGETS)
	$(if $(filter $(ORDINARY),$(T)),,$(call sanitized,executables fuzzers))
	$(Q)BUILD=$(if $(filter $(ORDINARY),$(T)),$(B),$(B)/asan) tests/storm/storm.py '$(T)' \
		$(if $(HOURS),$$(awk 'BEGIN { print int($(HOURS) * 3600) }'),$(SECONDS))

benched: $(BINS) $(BENCH)
	@:

# Seconds of each measurement; with 1.5 everything takes about five minutes.
SECONDS = 1.5
DOC =
bench:
	$(Q)tests/tools/deps.sh bench
	$(Q)$(MAKE) --no-print-directory $(JOBS) benched
	$(Q)BUILD=$(B) tests/bench/bench.py --seconds $(SECONDS) \
		$(if $(DOC),--doc $(DOC)) $(T)

# Fuzzes each target whose name contains T for SECONDS. New inputs are kept in
# $(B)/fuzzer/found, where the next run begins; failures are in $(B)/fuzzer.
fuzz: SECONDS = 60
fuzz:
	$(Q)tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) fuzzers B=$(B)/fuzzer CC=clang \
		CFLAGS='$(SANITIZE) -U_FORTIFY_SOURCE -fsanitize=fuzzer-no-link' \
		FUZZ_MAIN= FUZZ_LDFLAGS=-fsanitize=fuzzer
	$(Q)BUILD=$(B) tests/tools/fuzz.sh '$(T)' $(SECONDS)

fuzzers: $(FUZZ)
	@:

demo:
	$(Q)tests/tools/deps.sh demo
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)BUILD=$(B) tests/tools/demo.sh

# Installs the package in a Debian of its own, which is made once, and boots it.
NEWER = 99.0.0
check-package:
	$(Q)tests/tools/deps.sh package
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BINS) $(B)/targets/shares
	$(Q)mkdir -p $(B)/package && rm -f $(B)/package/*.deb
	$(Q)$(MAKE) --no-print-directory deb
	$(Q)$(MAKE) --no-print-directory deb VERSION=$(NEWER)
	$(Q)mv $(B)/sentry-profd_$(VERSION)_*.deb \
		$(B)/sentry-profd_$(NEWER)_*.deb $(B)/package
	$(Q)BUILD=$(B) tests/tools/package.py

HELPERS = sentry-profd-capture sentry-profd-unwind sentry-profd-ship \
	sentry-profd-oracle
MANS = $(wildcard docs/*.[1-8])
DOCS = README.md LICENSE $(wildcard docs/*.md) docs/CHANGES
UNITS = $(PREFIX)/lib/systemd/system
SYSUSERS = $(PREFIX)/lib/sysusers.d/sentry-profd.conf
TMPFILES = $(PREFIX)/lib/tmpfiles.d/sentry-profd.conf
EXAMPLE = $(wildcard systemd/sentry-profd.conf)
CONFIG = $(SYSCONFDIR)/sentry-profd/sentry-profd.conf

# A configuration that is there stays.
COMPLETION = daemon/ctl/completion/sentry-profd

install: all
	$(INSTALL) -d $(DESTDIR)$(SBINDIR) $(DESTDIR)$(BINDIR) \
		$(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(DOCDIR)
	$(INSTALL) -m 755 $(B)/sentry-profd $(B)/sentry-profd-metrics \
		$(DESTDIR)$(SBINDIR)
	$(INSTALL) -m 755 $(B)/sentry-profctl $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 755 $(HELPERS:%=$(B)/%) $(DESTDIR)$(LIBEXECDIR)
	for m in $(MANS:docs/%=%); do \
		$(INSTALL) -D -m 644 docs/$$m \
			$(DESTDIR)$(MANDIR)/man$${m##*.}/$$m || exit; \
	done
	for p in sentry-profd sentry-profctl; do \
		$(INSTALL) -D -m 644 $(COMPLETION).bash \
			$(DESTDIR)$(BASHDIR)/$$p && \
		$(INSTALL) -D -m 644 $(COMPLETION).fish \
			$(DESTDIR)$(FISHDIR)/$$p.fish || exit; \
	done
	$(INSTALL) -D -m 644 $(COMPLETION).zsh $(DESTDIR)$(ZSHDIR)/_sentry-profd
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)
	$(INSTALL) -m 644 $(CLIENT_SO) \
		$(DESTDIR)$(LIBDIR)/libsentry_profd.so.$(VERSION)
	ln -sf libsentry_profd.so.$(VERSION) \
		$(DESTDIR)$(LIBDIR)/libsentry_profd.so.$(SOVERSION)
	ln -sf libsentry_profd.so.$(SOVERSION) \
		$(DESTDIR)$(LIBDIR)/libsentry_profd.so
	$(INSTALL) -m 644 $(B)/libsentry_profd.a $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 644 $(B)/sentry_profd.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(INSTALL) -m 644 lib/client/sentry_profd.h $(DESTDIR)$(INCLUDEDIR)
	$(INSTALL) -d $(DESTDIR)$(DOCDIR)/examples
	$(INSTALL) -m 644 $(wildcard docs/examples/*.*) \
		$(DESTDIR)$(DOCDIR)/examples
	$(INSTALL) -m 644 $(DOCS) $(DESTDIR)$(DOCDIR)
	$(INSTALL) -d $(DESTDIR)$(UNITS)
	$(INSTALL) -m 644 systemd/*.service $(DESTDIR)$(UNITS)
	sed -i 's,/usr/sbin,$(SBINDIR),; s,/usr/bin,$(BINDIR),' \
		$(DESTDIR)$(UNITS)/sentry-profd*.service
	$(INSTALL) -D -m 644 systemd/sentry-profd.sysusers $(DESTDIR)$(SYSUSERS)
	$(INSTALL) -D -m 644 systemd/sentry-profd.tmpfiles $(DESTDIR)$(TMPFILES)
	$(INSTALL) -d $(DESTDIR)$(dir $(CONFIG))targets.d
	[ -e $(DESTDIR)$(CONFIG) ] || [ -z '$(EXAMPLE)' ] || \
		$(INSTALL) -m 600 $(EXAMPLE) $(DESTDIR)$(CONFIG)

uninstall:
	rm -f $(DESTDIR)$(SBINDIR)/sentry-profd \
		$(DESTDIR)$(SBINDIR)/sentry-profd-metrics \
		$(DESTDIR)$(BINDIR)/sentry-profctl \
		$(DESTDIR)$(LIBDIR)/libsentry_profd.* \
		$(DESTDIR)$(LIBDIR)/pkgconfig/sentry_profd.pc \
		$(DESTDIR)$(INCLUDEDIR)/sentry_profd.h \
		$(DESTDIR)$(UNITS)/sentry-profd.service \
		$(DESTDIR)$(UNITS)/sentry-profd-metrics.service \
		$(DESTDIR)$(SYSUSERS) $(DESTDIR)$(TMPFILES) \
		$(DESTDIR)$(BASHDIR)/sentry-prof* \
		$(DESTDIR)$(ZSHDIR)/_sentry-profd \
		$(DESTDIR)$(FISHDIR)/sentry-prof*
	for m in $(MANS:docs/%=%); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${m##*.}/$$m; \
	done
	rm -rf $(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(DOCDIR)

# A Debian package of this version. Built by itself, as PREFIX goes into the
# executables.
DEB = $(B)/sentry-profd_$(VERSION)_$(shell dpkg --print-architecture).deb
deb:
	$(Q)tests/tools/deps.sh deb
	$(Q)rm -rf $(B)/deb/root
	$(Q)$(MAKE) --no-print-directory $(JOBS) install B=$(B)/deb/build \
		PREFIX=/usr LIBDIR=/usr/lib/$$($(CC) -dumpmachine) \
		DESTDIR=$(abspath $(B))/deb/root
	$(Q)systemd/deb/build.sh $(B)/deb/root $(VERSION) $(DEB)

# The sources of the last commit, the same bytes whenever it is called.
DIST = sentry-profd-$(VERSION)
dist:
	$(Q)mkdir -p $(B)
	$(call say,DIST,$(B)/$(DIST).tar.gz)
	$(Q)git archive --format=tar.gz --prefix=$(DIST)/ -o $(B)/$(DIST).tar.gz HEAD

clean:
	rm -rf $(B)

FORCE:
.PHONY: executables storm pictures check-pictures check-sanitized check-package all analyze analyzed valgrind valgrinded aarch64-objs aarch64-checks built unit asan check bench benched fuzz fuzzers demo deb dist install uninstall clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(ALL_OBJS:.o=.d)
-include $(PRODUCT_OBJS:$(B)/obj/%.o=$(CHECKED)/%.d)
-include $(patsubst $(B)/tests/%,$(B)/obj/tests/unit/%.d,$(CHECKS))
-include $(patsubst %.o,%.d,$(foreach d,$(UNIT_DIRS),$(unit_$(d)_OBJ)))
