"""The names of the draws: functions of this package, and methods of generators in a graph."""

DRAWS = frozenset(
    (
        "bernoulli beta betabinom binomial categorical cauchy chisquare choice dirichlet exponential "
        "gamma gengamma geometric gumbel halfcauchy halfnormal hypergeometric integers invgamma laplace "
        "logistic lognormal multinomial multivariate_normal nbinom negative_binomial normal pareto "
        "permutation poisson rayleigh standard_normal t triangular truncexpon uniform vonmises wald "
        "weibull"
    ).split()
)
