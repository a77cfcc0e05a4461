"""Rewrites of PyTensor's names that are in no set: functions have them where their mode names them."""

from __future__ import annotations

from engine.rewriting.canonical_powers import local_mul_exp_to_exp_add, local_mul_pow_to_pow_add
from engine.rewriting.canonical_reductions import local_sum_prod_of_mul_or_div
from engine.rewriting.canonical_sums import local_add_canonizer
from engine.rewriting.distributed_products import local_greedy_distributor
from engine.rewriting.named_zeros import NAMED_ZEROS
from engine.rewriting.rewriters import NodeRewriter

BY_NAME: tuple[NodeRewriter, ...] = (
    local_mul_exp_to_exp_add,
    local_mul_pow_to_pow_add,
    local_sum_prod_of_mul_or_div,
    local_greedy_distributor,
    local_add_canonizer,
    *NAMED_ZEROS,
)
