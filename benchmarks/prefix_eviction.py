#!/usr/bin/env python3
"""Which cached block to give up first: what each rule makes requests compute again, beside the rule that llmc has (used longest ago).

  prefix_eviction.py [--blocks 1500,10000] [--crossover 64]
Requests come one after the other; a block of 16 tokens at position p (in blocks) takes 1 + p / CROSSOVER to compute, where CROSSOVER is the
position at which attention takes as long as everything else. Only a block behind which nothing is cached is given up, of those the one with the
least `age + value`, where `age` is what the last one given up had (GreedyDual: Young, 1994; with frequencies: Cherkasova, 1998). Values:
  cost        what the block takes to compute          hits        how often it was used (8 at most)
  cost*hits   both                                     1           used longest ago
Traces: conversations that grow (system prompts of 640 tokens, up to 4,800), the same with as many single questions, 40 system prompts of 2,000
tokens with mostly single questions, questions about 300 documents of 320 to 8,000 tokens. Needs nothing but Python; takes half a minute.
"""
import argparse
import heapq
import itertools
import math
import random


class Cache:
    def __init__(self, blocks, value):
        self.blocks, self.value = blocks, value
        self.nodes = {}  # text up to a block's end: [rank, children, parent, hits, serial of its last use]
        self.leaves, self.age, self.serials = [], 0.0, 0

    def request(self, text, cost):
        """What the blocks of `text` that are not there take to compute."""
        lost, parent = 0.0, None
        for position, block in enumerate(text):
            if block not in self.nodes:
                lost += cost(position)
                if len(self.nodes) >= self.blocks:
                    self.give_up()
                self.nodes[block] = [0, 0, parent, 0, 0]
                if parent is not None:
                    self.nodes[parent][1] += 1
            self.nodes[block][0] = math.inf  # in use
            parent = block
        for position in reversed(range(len(text))):
            node = self.nodes[text[position]]
            self.serials += 1
            node[3], node[4] = min(node[3] + 1, 8), self.serials
            node[0] = self.age + self.value(position, node[3])
            if node[1] == 0:
                heapq.heappush(self.leaves, (node[0], node[4], text[position]))
        return lost

    def give_up(self):
        while True:
            rank, serial, block = heapq.heappop(self.leaves)
            node = self.nodes.get(block)
            if node is None or node[0] != rank or node[4] != serial or node[1]:
                continue  # used again since
            self.age = max(self.age, rank)
            del self.nodes[block]
            parent = self.nodes.get(node[2])
            if parent:
                parent[1] -= 1
                if not parent[1] and parent[0] != math.inf:
                    heapq.heappush(self.leaves, (parent[0], parent[4], node[2]))
            return


def zipf(source, count, exponent):
    weights = [1 / (i + 1) ** exponent for i in range(count)]
    return lambda: source.choices(range(count), weights)[0]


def conversations(seed, requests, systems, system_blocks, most, longest, single):
    source = random.Random(seed)
    system, unique, live = zipf(source, systems, 1.0), itertools.count(), []
    for _ in range(requests):
        if source.random() < single:
            which, question = system(), next(unique)
            yield [("s", which, i) for i in range(system_blocks)] + [("o", question, i) for i in range(source.randint(2, 30))]
            continue
        if len(live) < most:
            which = system()
            live.append((next(unique), [("s", which, i) for i in range(system_blocks)]))
        at = source.randrange(len(live))
        if source.random() < 0.5:  # rather one that was active lately
            at = len(live) - 1 - min(len(live) - 1, int(source.expovariate(6 / most)))
        name, text = live.pop(at)
        text += [("c", name, len(text) + i) for i in range(source.randint(6, 40))]
        yield list(text)
        if len(text) <= longest and source.random() > 0.05:
            live.append((name, text))


def documents(seed, requests, count, exponent, least, most):
    source = random.Random(seed)
    lengths = [source.randint(least, most) for _ in range(count)]
    which = zipf(source, count, exponent)
    for question in range(requests):
        document = which()
        yield [("p", 0, i) for i in range(10)] + [("d", document, i) for i in range(lengths[document])] + [("q", question, i) for i in range(source.randint(2, 20))]


TRACES = {
    "conversations": lambda: conversations(1, 3000, 8, 40, 60, 300, 0.0),
    "conversations and questions": lambda: conversations(2, 5000, 8, 40, 60, 300, 0.5),
    "system prompts": lambda: conversations(3, 5000, 40, 125, 10, 200, 0.9),
    "documents": lambda: documents(4, 3000, 300, 0.8, 20, 500),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="1500,10000")
    parser.add_argument("--crossover", type=int, default=64)
    args = parser.parse_args()

    def cost(position):
        return 1 + position / args.crossover

    values = {"1": lambda p, hits: 1.0, "cost": lambda p, hits: cost(p), "hits": lambda p, hits: float(hits), "cost*hits": lambda p, hits: cost(p) * hits}
    print("what is computed again, as a share of everything (used longest ago), then relative to that")
    for name, make in TRACES.items():
        requests = list(make())
        everything = sum(cost(p) for text in requests for p in range(len(text)))
        for blocks in map(int, args.blocks.split(",")):
            caches = {key: Cache(blocks, value) for key, value in values.items()}
            lost = {key: sum(cache.request(text, cost) for text in requests) for key, cache in caches.items()}
            print(f"{name}, {blocks} blocks: {lost['1'] / everything:.3f}; " + ", ".join(f"{key} {lost[key] / lost['1']:.3f}" for key in list(values)[1:]), flush=True)


if __name__ == "__main__":
    main()
