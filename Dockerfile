# grb on a CPU, as a user without rights.
#
#   docker build -t grb .
#   docker run --rm grb reproduce synth-tiny
#   docker run --rm -v "$PWD":/data grb reproduce synth-cora --store results     # results stay in this directory
#   docker run --rm -v /path/to/datasets:/datasets:ro -e GRB_DATA=/datasets grb ls datasets
FROM python:3.11-slim

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    OMP_WAIT_POLICY=PASSIVE

WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# torch without CUDA: the index of PyTorch has builds for CPUs, which pip prefers for their +cpu
RUN pip install --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt . && rm -rf /build/*

# 1000 is the first user of most machines, so that mounted directories are writable
RUN useradd --create-home --uid 1000 grb && mkdir /data && chown grb:grb /data
USER 1000
ENV GRB_HOME=/home/grb/.cache/grb
WORKDIR /data

ENTRYPOINT ["grb"]
CMD ["--help"]
