# Every target first sets up and builds what it needs; both are quick when nothing changed.

SHELL := /bin/bash
ENVIRONMENT := . scripts/environment.bash &&
EXECUTABLES := install/densereward_ros/lib/densereward_ros

# As they were typed: make would take a dollar sign in them for a variable of its own.
override SOURCE := $(value SOURCE)
override TASK := $(value TASK)
export DURATION MINUTES SOURCE TASK

.PHONY: help setup build demo test test-fast test-compat evaluate-demo evaluate-events train-demo bench bench-gpu \
  bench-node bench-score bench-fleet soak lint clean

help:
	@echo 'make demo            a simulated robot, the reward node and a recovery controller, live in this terminal'
	@echo '                     DURATION=45 (seconds, 0 runs until Ctrl-C)'
	@echo '                     SOURCE=video.mp4 TASK="stack the cup" (a recording instead of the simulator)'
	@echo 'make test            the whole suite; make test-fast leaves out the slow tests'
	@echo 'make evaluate-demo   measure the demo checkpoint on held-out episodes, into benchmark/demo.json'
	@echo 'make evaluate-events measure the failure events beside simpler rules, into benchmark/events.json'
	@echo 'make bench           time every step of the fast engine against the model card, into benchmark/engine.json'
	@echo 'make bench-gpu       the same with a model of the released size and random weights, on CUDA'
	@echo 'make bench-node      what the node costs beside the model, against a plain one, into benchmark/node.json'
	@echo 'make bench-score     frames a second of densereward score beside plain loops, into benchmark/score.json'
	@echo 'make bench-fleet     one server and N robots: age of verdicts, throughput, fairness; into benchmark/fleet.json'
	@echo 'make soak            half an hour of everything that goes wrong; MINUTES=30'
	@echo 'make test-compat     the fast engine equals the reference on transformers 4.57 too'
	@echo 'make train-demo      train the demo checkpoint again'
	@echo 'make setup           make .venv: ROS 2 (unless one is sourced), torch and the rest'
	@echo 'make build           build the package with colcon, into install/'
	@echo 'make lint            check the style with ruff'
	@echo 'make clean           remove what was built; .venv stays'

setup:
	@scripts/bootstrap

build: setup
	@scripts/build

demo: build
	@$(ENVIRONMENT) exec $(EXECUTABLES)/demo $${DURATION:+--duration "$$DURATION"} \
	  $${SOURCE:+--source "$$SOURCE"} $${TASK:+--task "$$TASK"}

# From test/, so that Python finds the built package before the source folder, which has no messages.
test: build
	@$(ENVIRONMENT) cd test && exec python -m pytest

test-fast: build
	@$(ENVIRONMENT) cd test && exec python -m pytest -m 'not slow'

# The oldest transformers that is supported, in an environment of its own over that of the others.
COMPAT := build/transformers-4.57
test-compat: build
	@test -x $(COMPAT)/ready || { $(ENVIRONMENT) python -m venv --without-pip $(COMPAT) \
	  && python -c 'import site; print(*site.getsitepackages())' > $$(echo $(COMPAT)/lib/python3*/site-packages)/base.pth \
	  && python -m pip --python $(COMPAT)/bin/python install --no-deps \
	    transformers==4.57.6 huggingface-hub==0.36.0 tokenizers==0.22.1 && install -m 755 /dev/null $(COMPAT)/ready; }
	@$(ENVIRONMENT) cd test && exec ../$(COMPAT)/bin/python -m pytest models/fast

bench: build
	@$(ENVIRONMENT) exec python benchmark/engine.py

bench-gpu: build
	@$(ENVIRONMENT) exec python benchmark/engine.py --gpu --seconds 20 --output benchmark/engine_gpu.json

bench-node: build
	@$(ENVIRONMENT) exec python benchmark/node.py

bench-score: build
	@$(ENVIRONMENT) exec python benchmark/score.py

bench-fleet: build
	@$(ENVIRONMENT) exec python benchmark/fleet.py

soak: build
	@$(ENVIRONMENT) exec python benchmark/soak.py --minutes $${MINUTES:-30}

evaluate-demo: build
	@$(ENVIRONMENT) exec densereward evaluate-demo

evaluate-events: build
	@$(ENVIRONMENT) exec densereward evaluate-events

train-demo: build
	@$(ENVIRONMENT) exec densereward train-demo

lint: setup
	@$(ENVIRONMENT) exec ruff check .

clean:
	rm -rf build install log
