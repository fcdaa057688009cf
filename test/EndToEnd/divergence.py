"""KL divergence of rows of logits from stored reference distributions."""
import numpy


def kl_rows(rows, golden):
    """(mean KL(reference || rows), share of rows with the reference's first token).

    Over the reference's likeliest tokens and one bucket for all the others: by the log-sum inequality at most the
    divergence over the whole vocabulary, and with 64 buckets close to it (scripts/measure-kl.py gives the whole;
    docs/accuracy.md has both). The stored log-probabilities are rounded to 1e-4, hence values down to about -1e-6.
    """
    ids = numpy.array(golden["top_ids"])
    reference = numpy.array(golden["top_logprobs"])
    rest = numpy.array(golden["rest_logprob"])
    logprobs = numpy.empty(reference.shape)
    for i, row in enumerate(rows):
        row = row.astype("f8")
        largest = row.max()
        logprobs[i] = row[ids[i]] - largest - numpy.log(numpy.exp(row - largest).sum())
    ours_rest = numpy.log(numpy.maximum(1.0 - numpy.exp(logprobs).sum(1), 1e-12))
    kl = (numpy.exp(reference) * (reference - logprobs)).sum(1) + numpy.exp(rest) * (rest - ours_rest)
    top1 = rows.argmax(1) == ids[:, 0]
    return float(kl.mean()), float(top1.mean())
