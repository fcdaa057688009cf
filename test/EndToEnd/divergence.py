"""KL divergence of rows of logits from stored reference distributions."""
import math


def log_softmax_terms(row):
    """(largest logit, log of the sum of exp(logit - largest))."""
    largest = max(row)
    exp = math.exp
    return largest, math.log(sum([exp(value - largest) for value in row]))


def kl_row(row, top_ids, top_logprobs, rest_logprob):
    """KL(reference || row) over the reference's likeliest tokens and one bucket for all the others.

    By the log-sum inequality at most the divergence over the whole vocabulary; with 64 buckets the difference is small
    (docs/accuracy.md has the full figure, from scripts/measure-kl.py).
    """
    largest, log_sum = log_softmax_terms(row)
    total, mass = 0.0, 0.0
    for token, reference in zip(top_ids, top_logprobs):
        logprob = row[token] - largest - log_sum
        mass += math.exp(logprob)
        total += math.exp(reference) * (reference - logprob)
    rest = math.log(max(1.0 - mass, 1e-12))
    return total + math.exp(rest_logprob) * (rest_logprob - rest)


def kl_rows(rows, golden):
    """(mean KL, share of rows with the reference's first token)."""
    values, top1 = [], 0
    for i, row in enumerate(rows):
        values.append(kl_row(row, golden["top_ids"][i], golden["top_logprobs"][i], golden["rest_logprob"][i]))
        best = max(row)
        top1 += row[golden["top_ids"][i][0]] == best
    return sum(values) / len(values), top1 / len(values)
