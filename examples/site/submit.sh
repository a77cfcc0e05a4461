#!/bin/bash
# Submit a job that fills the cache, and an array that starts when it has ended well:
#
#     ./submit.sh model.py ARGUMENTS
#
# Prints the numbers of both jobs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fill=$(sbatch --parsable "$here/fill.sbatch" "$@")
array=$(sbatch --parsable --dependency="afterok:$fill" --kill-on-invalid-dep=yes "$here/array.sbatch" "$@")
echo "$fill $array"
