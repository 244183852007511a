# Type `make help`. Everything is built inside this folder: .venv, data, _build.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
EPOCHS ?= 15
IMAGES ?= original
CALIB_DATA ?= data
export CALIB_DATA := $(if $(filter /%,$(CALIB_DATA)),$(CALIB_DATA),$(CURDIR)/$(CALIB_DATA))
# A second build in this folder waits for the first, and a killed one leaves no lock behind.
ALONE = $(PYTHON) book/_tools/alone.py _build/.lock $(MAKE) --no-print-directory
# Tests of one file share what is dear to make, such as a browser or the PDF.
PARALLEL := -n $(JOBS) --dist loadfile
# The home may be read-only: what the programs keep lies in this folder.
CACHES := XDG_CACHE_HOME="$(CURDIR)/_build/cache" MPLCONFIGDIR="$(CURDIR)/_build/cache/matplotlib"

ifneq (,$(findstring :,$(CURDIR)))
$(error this folder lies under a path with a colon, $(CURDIR), which no PATH can hold; move it)
endif

.DEFAULT_GOAL := help
.PHONY: help book build test pdf contact-sheet data run verify publish ladder measure bench lint oldest newest lock clean

help: ## show the targets and settings
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22
	@echo
	@echo "Settings:"
	@echo "  CALIB_DATA=DIR   folder of the data (now $(CALIB_DATA))"
	@echo "  TORCH_INDEX=URL  take torch from this package index, for a build without CUDA"
	@echo "  JOBS=N           notebooks, or files of tests, run at once (now $(JOBS))"
	@echo "  EPOCHS=N         passes of each run of the ladder over its images (now $(EPOCHS))"
	@echo "  IMAGES=jpeg      train the ladder on the JPEG copies in the data folder, as in the book (now $(IMAGES))"
	@echo "  STRICT=1         fail where data are missing, instead of showing the published run"

book: ## get the data, run every notebook, build the site in _build/html
	@$(ALONE) build

build: $(BIN)/.installed
	@$(BIN)/python -m calib data || true
	@trap 'echo "Interrupted. The same command goes on from there."; exit 130' INT; \
	$(CACHES) $(BIN)/snakemake --cores $(JOBS) --nolock --rerun-incomplete --quiet rules host reason || \
		{ echo "error: the book was not built; see above. Run the same command again when it is mended."; exit 1; }
	@echo "The book is in _build/html/index.html, its numbers in _build/results.json."

test: book ## build the book, then run the tests
	$(BIN)/python -m pytest $(PARALLEL)

pdf: book ## build the book, then print all of it to _build/calibration.pdf (needs Chromium)
	@$(BIN)/python book/_tools/pdf.py _build/html _build/calibration.pdf
	@echo "The book is in _build/calibration.pdf."

contact-sheet: book ## build the book, then picture every page at three widths, light and dark (needs Chromium)
	@$(BIN)/python book/_tools/contact_sheet.py _build/html _build/contact-sheet
	@echo "Look at _build/contact-sheet/index.html."

data: $(BIN)/.installed ## get and check the data
	@$(BIN)/python -m calib data

# What the caller typed goes to the program as it is: make expands nothing in it.
override P := $(value P)
override NB := $(value NB)
export P NB

run: $(BIN)/.installed ## run one notebook with other parameters: make run NB=six-examples P="max_bins=10"
	@[ "$$NB" ] || { echo 'error: NB is missing, the notebook to run: make run NB=six-examples P="max_bins=10"; the notebooks are' \
		$$(basename -a -s .py notebooks/*.py) >&2; exit 1; }
	@name=$$(basename "$$NB" .py); $(CACHES) $(BIN)/python -m calib run "notebooks/$$name.py" \
		--output "_build/runs/$$name.ipynb" --numbers "_build/runs/$$name.json" --parameters "$$P"

verify: book ## compare every number of the last build with the published record
	@$(BIN)/python -m calib verify

publish: book ## run the tests, then renew the published record in book/published from the last build
	$(BIN)/python -m pytest $(PARALLEL) -m "not network and not record"
	@$(BIN)/python -m calib publish

ladder: $(BIN)/.installed ## train ResNet-8, 20 and 32 on CIFAR-10 with three seeds (hours; goes on where it was killed)
	@$(PYTHON) book/_tools/alone.py _build/.ladder-lock $(BIN)/snakemake -s notebooks/ladder/Snakefile --configfile notebooks/ladder/ladder.yaml \
		--config epochs=$(EPOCHS) images=$(IMAGES) --cores $(JOBS) --nolock --rerun-incomplete --keep-going --quiet host reason

bench: $(VENV)-bench/.installed ## time calib beside its peers, and give all the same awkward input (ten quiet minutes)
	$(VENV)-bench/bin/python tests/measure/training.py book/measured/training.json $(IMAGES)
	$(VENV)-bench/bin/python tests/measure/speed.py book/measured/speed.json
	$(VENV)-bench/bin/python tests/measure/edges.py book/measured/edges.json

measure: bench ## the same, then simulations, other processors, mutants (three quarters of an hour)
	$(VENV)-bench/bin/python tests/measure/simulations.py book/measured/simulations.json
	$(VENV)-bench/bin/python tests/measure/variation.py book/measured/variation.json
	PATH="$(abspath $(VENV))-bench/bin:$$PATH" $(VENV)-bench/bin/python tests/measure/mutants.py book/measured/mutants.json

lint: $(BIN)/.installed ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

oldest: ## the tests that need no site, with the oldest versions that pyproject.toml allows (needs uv)
oldest: RESOLUTION := lowest-direct
newest: ## the same with the newest versions
newest: RESOLUTION := highest
oldest newest:
	uv venv --quiet --clear --seed --python $(PYTHON) $(VENV)-$@
	uv pip install --quiet --no-config --python $(VENV)-$@ --torch-backend cpu --resolution $(RESOLUTION) -e '.[test]'
	$(VENV)-$@/bin/python -m calib data || true
	$(VENV)-$@/bin/python -m pytest -m 'not site and not network'

lock: ## resolve requirements.txt anew (needs uv)
	uv pip compile --universal --python-version 3.11 --extra book --extra models --extra test --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.txt

clean: ## delete what the build made; data and environment stay
	rm -rf _build book/notebooks .snakemake

# The environment holds exactly the lock, byte by byte. With TORCH_INDEX, torch comes from there, by version alone, and its
# CUDA libraries stay out.
$(BIN)/.installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
ifdef TORCH_INDEX
	$(BIN)/pip install --index-url $(TORCH_INDEX) $$(grep -oE '^torch(vision)?==[^ ]+' requirements.txt)
	awk '/^[^ ]/ {kept = !/^(torch|torchvision|triton|nvidia-[a-z0-9-]*|cuda-[a-z]*)==/} kept' requirements.txt > $(VENV)/without-cuda.txt
	$(BIN)/pip install --require-hashes -r $(VENV)/without-cuda.txt
else
	$(BIN)/pip install --require-hashes -r requirements.txt
endif
	$(BIN)/pip install --no-deps --no-build-isolation -e .
	touch $@

# The peers live in an environment of their own, beside the lock.
$(VENV)-bench/.installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --require-hashes -r requirements.txt
	$(VENV)-bench/bin/pip install --no-build-isolation -e '.[bench]'
	touch $@
