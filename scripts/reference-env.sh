#!/usr/bin/env bash
# A Python environment with the reference implementation (torch and transformers, CPU only), for making goldens and measuring
# accuracy; building, testing and using llmc do not need it. Usage: scripts/reference-env.sh DIR     (about 3 GB)
# Where there is a CUDA toolkit, torch finds most of the GPU libraries that it wants there; elsewhere it brings them all.
set -euo pipefail
dir=${1:?usage: reference-env.sh DIR}
[ -x "$dir/bin/python" ] || python3 -m venv "$dir"
pip() { "$dir/bin/pip" -q --disable-pip-version-check "$@"; }
if [ -d /usr/local/cuda/lib64 ]; then
  pip install --no-deps torch==2.11.0 nvidia-cufile nvidia-cusparselt-cu13 nvidia-nvshmem-cu13 \
    nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13 nvidia-cuda-cupti
else
  pip install torch==2.11.0
fi
pip install numpy typing_extensions sympy networkx jinja2 fsspec filelock transformers==5.17.0 gguf safetensors tokenizers
pip install --no-deps accelerate psutil packaging
"$dir/bin/python" -c "import torch, transformers; print('torch', torch.__version__, 'transformers', transformers.__version__)"
