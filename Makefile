# `make help` lists what there is. Everything is run from the repository's root.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build install install-deps install-readers install-vm lint demo test soak bench fuzz packetdrill

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

build: ## The programs, hopscope and hopscope-bench, and what `hopscope stack run` preloads, below target/release
	cargo build --release --locked -p hopscope -p hopscope-bench -p hopscope-stack-preload

PREFIX ?= /usr/local
install: ## What `make build` built, stripped, to PREFIX=/usr/local below DESTDIR
	@! target/release/hopscope --version | grep 'test build' || { echo 'first: make build' >&2; exit 2; }
	install -D --strip -t $(DESTDIR)$(PREFIX)/bin target/release/hopscope target/release/hopscope-bench
	install -D --strip -t $(DESTDIR)$(PREFIX)/lib/hopscope target/release/libhopscope_preload.so

install-deps: ## Install by package name what the tests need and this machine lacks
	scripts/install-deps

install-readers: ## Programs by others that read exports, below target/ (pip); the tests of export ask them
	scripts/install-readers

install-vm: ## Debian's 6.1 kernel, below target/ (apt); the tests in a virtual machine boot it
	scripts/install-vm

lint: ## Format, clippy, and cargo-deny where it is installed
	scripts/lint

test: install-deps install-readers install-vm ## Every test at reduced counts; ends with a table of what ran
	HOPSCOPE_COUNTS=reduced scripts/test

soak: install-deps install-readers install-vm ## Every test at full counts, what of it is not done for this commit; SHARD=NAME: a part
	HOPSCOPE_COUNTS=full scripts/soak $(SHARD)

demo: install-deps build ## Start the demo network function, attach live, record, report
	demo/run

bench: install-deps install-vm build ## Every bench on this machine; results in docs/results/DATE-HOST
	scripts/bench

CASES ?= 100000
fuzz: ## The property tests (damaged files, random programs) at CASES=100000 inputs each
	PROPTEST_CASES=$(CASES) cargo test --release --locked -p hopscope-trace -p hopscope-analyze \
		-p hopscope-process -p hopscope-probe -p hopscope-unwind -p hopscope-vnet -p hopscope-stack-engine \
		-p hopscope-stack-instance

packetdrill: ## packetdrill's scripts against the stack's engine; PACKETDRILL=its folder gtests/net, built
	@scripts/packetdrill "$(PACKETDRILL)"
