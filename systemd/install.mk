# Installation, the Debian packages and the archive of the sources.
HELPERS = sentry-profd-capture sentry-profd-unwind sentry-profd-ship \
	sentry-profd-oracle
MANS = $(wildcard docs/*.[1-8])
DOCS = README.md LICENSE $(wildcard docs/*.md) docs/CHANGES
UNITS = $(PREFIX)/lib/systemd/system
SYSUSERS = $(PREFIX)/lib/sysusers.d/sentry-profd.conf
TMPFILES = $(PREFIX)/lib/tmpfiles.d/sentry-profd.conf
EXAMPLE = $(wildcard systemd/sentry-profd.conf)
CONFIG = $(SYSCONFDIR)/sentry-profd/sentry-profd.conf

INSTALL ?= install
COMPLETION = daemon/ctl/completion/sentry-profd
# Directories of bash, zsh and fish for command completion.
BASHDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d

# A configuration that is there stays.
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

# The Debian packages of this version: build/sentry-profd_*.deb, and build/sentry-profd-oracle_*.deb
# with the executable of that name. Built by themselves, as PREFIX goes into the executables. With
# SOURCE_DATE_EPOCH in the environment they are the same bytes wherever the same compiler builds them.
# DEB_ARCH: after a cross build (make deb-arm64), dpkg's name of the architecture.
STRIP ?= strip
DEBS = $(B)
deb:
	$(Q)tests/tools/deps.sh deb
	$(Q)rm -rf $(B)/deb/root
	$(Q)$(MAKE) --no-print-directory $(JOBS) install B=$(B)/deb/build \
		PREFIX=/usr LIBDIR=/usr/lib/$$($(CC) -dumpmachine) \
		CFLAGS='$(CFLAGS) -ffile-prefix-map=$(CURDIR)=.' \
		DESTDIR=$(abspath $(B))/deb/root
	$(Q)STRIP='$(STRIP)' systemd/deb/build.sh $(B)/deb/root $(VERSION) $(DEBS) $(DEB_ARCH)

# The sources of the last commit, the same bytes whenever it is called. .commit has the commit, for
# --version. Needs git 2.37.
DIST = sentry-profd-$(VERSION)
dist:
	$(Q)mkdir -p $(B)
	$(call say,DIST,$(B)/$(DIST).tar.gz)
	$(Q)git archive --format=tar.gz --prefix=$(DIST)/ -o $(B)/$(DIST).tar.gz \
		--add-virtual-file=$(DIST)/.commit:$(COMMIT) HEAD

.PHONY: install uninstall deb dist
