# Targets for people; what they do is in tools/. `make launch` is the shortest way to a running instance.
SHELL := /bin/bash
COLLECTION := collections/ansible_collections/novalite/cloud
NOVALITE_HOME ?= $(CURDIR)/.novalite
BENCH ?=
CONFORMANCE ?=
# What `make unit` and `make molecule` are given beyond
UNIT ?=
SCENARIOS ?=

export NOVALITE_HOME := $(abspath $(NOVALITE_HOME))
export NOVALITE_IMAGES := $(CURDIR)/.cache/images
export MOLECULE_GLOB := tests/molecule/*/molecule.yml
export PATH := $(CURDIR)/.venv/bin:$(PATH):/usr/sbin:/sbin
# Many an image for containers sets the last one: each playbook and each test process would then compile all modules again
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.PHONY: help bootstrap launch api lab lab-down test test-all lint lint-code lint-playbooks unit sanity molecule coverage mutants versions docs bench lock conformance
.NOTPARALLEL:

help:
	@echo 'make launch    an instance `demo` on a throwaway hypervisor, from a bare Debian 12 or 13'
	@echo 'make api       the REST API over the lab, on 127.0.0.1:8774, until Ctrl-C; logins are written to lab/'
	@echo 'make lab       two throwaway hypervisors, ready to launch on; make lab-down removes them'
	@echo 'make test      what a change needs: lint, unit, sanity and molecule (each is a target, too)'
	@echo 'make test-all  that with both databases throughout, every other scenario, and other versions of Ansible'
	@echo 'make mutants   wrong lines, one at a time, that the nearest tests must notice'
	@echo 'make docs      the documentation, into docs/_build/html; a warning or a dead link fails'
	@echo 'make bench     measurements; BENCH=<prefix> for some'
	@echo 'make lock      requirements.lock anew: what runs in production, with hashes'
	@echo 'make conformance runs the tests of Tempest and gophercloud against the API; CONFORMANCE=<regex> for some: gophercloud, TestPorts'

bootstrap:
	@tools/bootstrap

lab: bootstrap
	@tools/lab up

lab-down:
	@tools/lab down

launch: lab
	@ansible-playbook -i inventories/lab playbooks/launch.yml -e server=demo -e flavor=m1.tiny -e image=ami-tiny -e key=test \
	  -e wait_for=ssh

api: bootstrap
	@exec tools/api

# Unit tests and scenarios often wait for processes and guests; linters, which only compute, use the time that they leave
test test-all: export NOVALITE_COVERAGE := $(CURDIR)/.cache/coverage.jsonl
test test-all: export ANSIBLE_CALLBACK_PLUGINS := $(CURDIR)/tests/support/callbacks
test test-all: export ANSIBLE_CALLBACKS_ENABLED := novalite.cloud.launch_summary,novalite.cloud.explain,record_coverage

test: bootstrap
	@rm -f "$$NOVALITE_COVERAGE"; nice $(MAKE) lint sanity & computing=$$!; $(MAKE) unit molecule coverage; verdict=$$?; wait $$computing && exit $$verdict

test-all: bootstrap
	@rm -f "$$NOVALITE_COVERAGE"; nice $(MAKE) lint sanity & computing=$$!; $(MAKE) unit molecule coverage UNIT=--thorough SCENARIOS=--all; verdict=$$?; \
	  wait $$computing && exit $$verdict

lint: lint-code lint-playbooks

lint-code: bootstrap
	ruff check .
	ruff format --check --quiet .
	vermin --quiet --no-tips -t=3.9- --violations --exclude-regex '/_(ledger|scheduling)/' $(COLLECTION)/plugins/modules $(COLLECTION)/plugins/module_utils
	mypy
	tools/lint-shell

lint-playbooks: bootstrap
	tools/lint-playbooks

unit: bootstrap
	@tools/unit $(UNIT)

sanity: bootstrap
	cd $(COLLECTION) && ansible-test sanity --python "$$(python -c 'import sys; print(*sys.version_info[:2], sep=".")')"

molecule: bootstrap
	@tools/scenarios $(SCENARIOS)

# What the last of both came to, and what nothing comes to; `tools/coverage-table` shows all of it
coverage: bootstrap
	@tools/coverage-table --short

# Wrong lines that the nearest tests must notice
mutants: bootstrap
	@python -m tests.mutants

versions: bootstrap
	@tools/ansible-versions

docs: bootstrap
	@tools/docs

bench: bootstrap
	@python -m tests.bench "$(BENCH)"

lock: bootstrap
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra postgresql --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements.lock pyproject.toml

conformance: bootstrap
	@tools/conformance "$(CONFORMANCE)"
