"""Tables of the elementary functions, for float64 (DOUBLE) and float32 (FLOAT): polynomials, and constants.

tools/minimax.py fits the polynomials anew (Remez's algorithm). The comments say how large the error of each
is beside the function's value. A constant in parts is the sum of the parts: all but the last have so many
zeros at the end that a product with an integer below 2**20 (float64) or 2**8 (float32) is exact.
"""

from __future__ import annotations

from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, LlvmType

Table = dict[LlvmType, tuple[float, ...]]


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float.fromhex(number) for number in text.split())


LOG2_E = 1.4426950408889634

LN2: Table = {
    DOUBLE: _numbers("0x1.62e42feep-1 0x1.a39ef35793c76p-33"),
    FLOAT: _numbers("0x1.62e4p-1 0x1.7f7d1cp-20"),
}
"""The natural logarithm of 2, in parts."""

EXP: Table = {
    DOUBLE: _numbers(  # 2**-55.6
        "0x1.0000000000005p-1 0x1.555555555555cp-3 0x1.55555555520f4p-5 0x1.111111110e6e1p-7 "
        "0x1.6c16c17f375bep-10 0x1.a01a01b5d384ep-13 0x1.a019a6861656cp-16 0x1.71ddea1036c59p-19 "
        "0x1.28a2ab430c645p-22 0x1.af769a87bc9e1p-26"
    ),
    FLOAT: _numbers(  # 2**-26.2
        "0x1.0000003533460p-1 0x1.5554af5728f6cp-3 0x1.555486d5f7a73p-5 0x1.1227fe2e62109p-7 "
        "0x1.6d9909e6ce94bp-10"
    ),
}
"""(exp(r) - 1 - r) / r**2 for |r| <= ln(2) / 2."""

EXP2: Table = {
    DOUBLE: _numbers(  # 2**-58.0
        "0x1.62e42fefa39efp-1 0x1.ebfbdff82c5a5p-3 0x1.c6b08d704a0d7p-5 0x1.3b2ab6fb9ff34p-7 "
        "0x1.5d87fe78a0e20p-10 0x1.4309130f36d0dp-13 0x1.ffcbfc7c4b5d5p-17 0x1.62bfc6b941101p-20 "
        "0x1.b524cde1c4145p-24 0x1.e61ccbc518bf1p-28 0x1.ea18542bbaa65p-32"
    ),
    FLOAT: _numbers(  # 2**-29.0
        "0x1.62e430cc9001fp-1 0x1.ebfbe0d7bd70bp-3 0x1.c6aecf1361902p-5 0x1.3b29a9e48810ep-7 "
        "0x1.5f47ddd0ec483p-10 0x1.448fe4a419ac8p-13"
    ),
}
"""(2**r - 1) / r for |r| <= 1/2."""

LOG: Table = {
    DOUBLE: _numbers(  # 2**-59.5
        "0x1.5555555555593p-1 0x1.999999997fb5ap-2 0x1.2492494215c1dp-2 0x1.c71c51e94be6ep-3 "
        "0x1.746645edce3c0p-3 0x1.39a0facbd5073p-3 0x1.2f0d5882af791p-3"
    ),
    FLOAT: _numbers("0x1.55557a41990f6p-1 0x1.995e9be523859p-2 0x1.31e666f591d9ap-2"),  # 2**-30.2
}
"""(log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2, for (1 + s) / (1 - s) within sqrt(1/2) and sqrt(2)."""

HALF_PI = _numbers("0x1.921fb544p+0 0x1.0b4611a6p-34 0x1.3198a2e037073p-69")
"""Half of pi, in parts: 33 bits, 33 bits and the rest; for float64."""

HALF_PI_FUSED: Table = {
    DOUBLE: _numbers("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54 -0x1.f1976b7ed8fbcp-110"),
    FLOAT: _numbers("0x1.921fb6p+0 -0x1.777a5cp-25 -0x1.ee59dap-50"),
}
"""Half of pi, in parts that have all digits: for products that are fused with sums."""

SIN: Table = {
    DOUBLE: _numbers(  # 2**-58
        "-0x1.5555555555549p-3 0x1.111111110f882p-7 -0x1.a01a019c126b3p-13 0x1.71de35785199fp-19 "
        "-0x1.ae5e66a50e365p-26 0x1.5d931ca4e04f2p-33"
    ),
    FLOAT: _numbers(  # 2**-37.3
        "-0x1.5555554b44295p-3 0x1.1111078751a8dp-7 -0x1.a00ec4b1be032p-13 0x1.6ca5043a7fdd6p-19"
    ),
}
"""(sin(r) - r) / r**3 in r**2, for |r| <= pi / 4."""

COS: Table = {
    DOUBLE: _numbers(  # 2**-64
        "0x1.555555555554cp-5 -0x1.6c16c16c151b4p-10 0x1.a01a019cb65e4p-16 -0x1.27e4f80ce92d5p-22 "
        "0x1.1ee9edbcd986dp-29 -0x1.8faf7a741a07cp-37"
    ),
    FLOAT: _numbers("0x1.5555496199145p-5 -0x1.6c0bb71d569dbp-10 0x1.99c438b95a0a4p-16"),  # 2**-33.0
}
"""(cos(r) - 1 + r**2 / 2) / r**4 in r**2, for |r| <= pi / 4."""

ARCTAN: Table = {
    DOUBLE: _numbers(  # 2**-59.4
        "-0x1.555555555553dp-2 0x1.99999999958eep-3 -0x1.24924922af82dp-3 0x1.c71c70e68942ap-4 "
        "-0x1.745cf8e14ef4ep-4 0x1.3b1118eb09b5ep-4 -0x1.10ebb0ba854b6p-4 0x1.df0e973452e99p-5 "
        "-0x1.9cce722fbdeaap-5 0x1.37c81dfa185d9p-5 -0x1.25476a7581b21p-6"
    ),
    FLOAT: _numbers(  # 2**-30.5
        "-0x1.55554952d3597p-2 0x1.9991a5974ae55p-3 -0x1.23b601412761cp-3 0x1.b1f5c33b8fd2dp-4 "
        "-0x1.f210194358eeap-5"
    ),
}
"""(atan(r) - r) / r**3 in r**2, for |r| <= tan(pi / 8)."""

ERF: Table = {
    DOUBLE: _numbers(  # 2**-56.9
        "0x1.20dd750429b6dp+0 -0x1.812746b0379bdp-2 0x1.ce2f21a040d16p-4 -0x1.b82ce311fa948p-6 "
        "0x1.565bccf92b40cp-8 -0x1.c02db03dd9404p-11 0x1.f9a2baa92930bp-14 -0x1.f4ca4d7157c71p-17 "
        "0x1.b97fd3eaabcc5p-20 -0x1.5c07274683743p-23 0x1.d71b11045784bp-27 -0x1.abae4dc4327cdp-31"
    ),
    FLOAT: _numbers(  # 2**-29.6
        "0x1.20dd74fe48b85p+0 -0x1.81273de949dc8p-2 0x1.ce2cf7400a54ap-4 -0x1.b7f90d10a7ff5p-6 "
        "0x1.5405b227905bfp-8 -0x1.a3f702a4e6255p-11 0x1.496a394065310p-14"
    ),
}
"""erf(x) / x in x**2, for |x| <= 1."""

ERFC_ABOVE_ONE = _numbers(  # 2**-25.0 beside 1
    "0x1.0695eb70becc9p-11 -0x1.5a8cbc38c728ep-9 0x1.aa84cfdbe50cap-8 -0x1.40fe114a95df1p-7 "
    "0x1.4384bcb853856p-7 -0x1.bc662ff8e7f06p-8 0x1.8408db4c56ea3p-9 -0x1.e7aedaf0e9aadp-12 "
    "-0x1.9777582efca59p-12 0x1.3bd1ff9a22866p-12 -0x1.b399997a6c02dp-15 -0x1.a8c315e5afd6cp-16 "
    "0x1.322c06efc4952p-17"
)
"""erfc(t + ABOVE_ONE) for x = t + ABOVE_ONE from 1 to ONE_FROM, for erf in float32: above, it is 1."""

ABOVE_ONE, ONE_FROM = 2.4609375, 3.921875

ERFC: Table = {
    DOUBLE: _numbers(  # 2**-57
        "0x1.20dd75042c0cbp-1 0x1.20dd750350d7bp+0 0x1.f9838d0e39908p+0 0x1.6914cb5bb9993p+1 "
        "0x1.5707deec2bd4fp+1 -0x1.217f44c8fb2ddp-2 -0x1.d04796eb66e33p+2 -0x1.b8b22a2e079f2p+3 "
        "-0x1.cc9cb240839e0p+0 0x1.f14e0a4da6851p+5 -0x1.c3a4083a84aedp+6 0x1.3ce05fdcb9bbcp+11 "
        "-0x1.54d6702f1a5aap+14 0x1.fe1258b58328fp+16 -0x1.33b7d5309b495p+19 0x1.1e82a66ee9827p+21 "
        "-0x1.8e3ed44d66921p+22 0x1.98f9d858b39b6p+23 -0x1.3354b96470514p+24 0x1.4a42efa17d867p+24 "
        "-0x1.e2cbdcec010e9p+23 0x1.afae11964ba3bp+22 -0x1.65589247a422bp+20"
    ),
    FLOAT: _numbers(  # 2**-28.6
        "0x1.20db3ff16f2fep-1 0x1.2118d10d206c3p+0 0x1.f42f142e3f9b4p+0 0x1.8b449d0e8e0d5p+1 "
        "0x1.309f9bdc34642p-1 0x1.3775ae6578855p+3 -0x1.165143d08740dp+5 0x1.01f0dae6ef2e8p+4 "
        "0x1.11bbdba73e512p+5 -0x1.f140590ab9719p+4"
    ),
}
"""exp(x**2) erfc(x) / t in t = 1 / (x + 2), for 0.5 <= x up to where erfc is 0."""

ERFC_SHIFT = 2.0

INVERSE_LOGS: dict[LlvmType, dict[int, tuple[float, ...]]] = {
    DOUBLE: {
        2: _numbers("0x1.71547652b82fep+0 0x1.777d0ffda0d24p-56"),
        10: _numbers("0x1.bcb7b1526e50ep-2 0x1.95355baaafad3p-57"),
    },
    FLOAT: {
        2: _numbers("0x1.715476p+0 0x1.4ae0cp-26"),
        10: _numbers("0x1.bcb7b2p-2 -0x1.5b235ep-27"),
    },
}
"""1 / log(base), in parts: rounded, and what that lost."""

LOGS_OF_TWO: dict[LlvmType, dict[int, tuple[float, ...]]] = {
    DOUBLE: {2: (1.0, 0.0), 10: _numbers("0x1.34413509f7800p-2 0x1.fef311f12b358p-46")},
    FLOAT: {2: (1.0, 0.0), 10: _numbers("0x1.344p-2 0x1.3509f8p-18")},
}
"""log(2) / log(base), in parts."""

LOG_OF_SUM = _numbers(  # 2**-27.8
    "-0x1.fffff8b94b243p-2 0x1.5555448743dabp-2 -0x1.0003fd6b816a2p-2 0x1.99a96922a643ap-3 "
    "-0x1.5432450796977p-3 0x1.22115d1ae1462p-3 -0x1.0e841c32cf74cp-3 0x1.0a56ce9522183p-3 "
    "-0x1.40723daf559c3p-4"
)
"""(log(1 + f) - f) / f**2, for 1 + f within sqrt(1/2) and sqrt(2): for float32."""

LOG_TAIL: Table = {
    DOUBLE: _numbers(  # 2**-55.6
        "0x1.999999999999ap-2 0x1.249249249207ep-2 0x1.c71c71c81ef13p-3 0x1.745d1689511a7p-3 "
        "0x1.3b13f0091fa9ep-3 0x1.11076c25af25ap-3 0x1.e2ce43b69943bp-4 0x1.c03d7d6a4e248p-4"
    ),
    FLOAT: _numbers(  # 2**-29.7
        "0x1.5555554b89131p-1 0x1.9999ec3498fccp-2 0x1.245bf1b6dc6b8p-2 0x1.ddde50914b6d0p-3"
    ),
}
"""More terms of LOG, for powers; in float64 less 2/3, over s**2."""

TWO_BY_LN2: Table = {
    DOUBLE: _numbers("0x1.71547652b82fep+1 0x1.777d0ffda0d24p-55"),
    FLOAT: _numbers("0x1.7154760000000p+1 0x1.4ae0c00000000p-25"),
}
"""2 / log(2), in parts: rounded, and what that lost."""

THIRD_BY_LN2 = _numbers("0x1.ec709dc3a03fdp-1 0x1.d27f05548af0cp-55")
"""2/3 / log(2), in parts; in float64."""
