"""Pieces that run equally often: by hand, and against random walks through random graphs."""

from __future__ import annotations

import random
from collections import Counter

from every_case import check_all

from luthier_py.program.analysis import OUTSIDE, build_spanning_tree, estimate_frequencies, find_cyclic_pieces

IN, OUT = OUTSIDE, OUTSIDE


def ways(pieces, edges):
    """Edges, by where they come from."""
    return [[b for a, b in edges if a == piece] for piece in (*range(pieces), OUTSIDE)]


def equally_often(pieces, edges, rng):
    """By a tree of which nothing follows."""
    return build_spanning_tree(ways(pieces, edges), [rng.random() for _ in range(pieces)]).equally_often()


def groups(pieces, *edges):
    found = {}
    for piece, group in enumerate(equally_often(pieces, edges, random.Random(0))):
        found.setdefault(group, set()).add(piece)
    return sorted(found.values(), key=min)


def test_a_diamond_runs_its_ends_equally_often():
    assert groups(4, (IN, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, OUT)) == [{0, 3}, {1}, {2}]


def test_a_loop_runs_more_often_than_what_is_around_it():
    assert groups(4, (IN, 0), (0, 1), (1, 2), (2, 1), (2, 3), (3, OUT)) == [{0, 3}, {1, 2}]


def test_an_early_exit_separates():
    assert groups(3, (IN, 0), (0, 1), (0, OUT), (1, 2), (2, OUT)) == [{0}, {1, 2}]


def test_a_block_that_branches_to_itself():
    assert groups(3, (IN, 0), (0, 1), (1, 1), (1, 2), (2, OUT)) == [{0, 2}, {1}]


def test_what_never_comes_to_an_end_is_apart():
    assert groups(4, (IN, 0), (0, 1), (0, 2), (2, 3), (3, 2), (1, OUT)) == [{0, 1}, {2, 3}]


def walk(rng, following):
    """Executions of each piece on one way from the outside to the outside; None if it takes too long."""
    counts, at = Counter(), rng.choice(following[IN])
    for _ in range(2000):
        if at == OUT:
            return counts
        counts[at] += 1
        at = rng.choice(following[at])
    return None


def check_walks(seed):
    rng = random.Random(seed)
    pieces = rng.randint(1, 10)
    flow = [(IN, 0)] + [(n, n + 1) for n in range(pieces - 1)] + [(pieces - 1, OUT)]
    flow += [(rng.randrange(pieces), rng.randrange(-1, pieces)) for _ in range(rng.randint(0, 6))]
    following = {}
    for a, b in flow:
        following.setdefault(a, []).append(b)
    found = equally_often(pieces, flow, rng)
    walks = [counts for counts in (walk(rng, following) for _ in range(60)) if counts is not None]
    for a in range(pieces):
        for b in range(a):
            assert found[a] != found[b] or all(counts[a] == counts[b] for counts in walks)


def test_random_walks_agree():
    check_all(check_walks, range(150))


def graph(rng):
    pieces = rng.randint(1, 10)
    flow = [(IN, 0)] + [(n, n + 1) for n in range(pieces - 1)] + [(pieces - 1, OUT)]
    return pieces, flow + [(rng.randrange(pieces), rng.randrange(-1, pieces)) for _ in range(rng.randint(0, 6))]


def check_executions(seed):
    rng = random.Random(seed)
    pieces, flow = graph(rng)
    following = {}
    for a, b in flow:
        following.setdefault(a, []).append(b)
    found = build_spanning_tree(ways(pieces, flow), [rng.random() for _ in range(pieces)])
    again = find_cyclic_pieces(ways(pieces, flow))
    values = [rng.randint(-9, 99) for _ in range(pieces)]
    weights = found.weights(values)
    for counts in filter(None, (walk(rng, following) for _ in range(30))):
        assert found.executions({piece: counts[piece] for piece in found.counted}) == [counts[p] for p in range(pieces)]
        assert sum(weights[p] * counts[p] for p in found.counted) == sum(values[p] * counts[p] for p in range(pieces))
        assert all(again[piece] for piece, count in counts.items() if count > 1)


def test_all_executions_follow_from_those_of_few():
    check_all(check_executions, range(150))


def test_what_runs_often_is_not_counted_where_something_else_can_be():
    flow = ways(4, [(IN, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, OUT)])  # a choice in a loop
    often = estimate_frequencies(flow)
    assert often[0] == often[3] == 2 * often[1] == 2 * often[2]
    assert set(build_spanning_tree(flow, [3, 1, 2, 3]).counted) == {1, 2}
    assert find_cyclic_pieces(flow) == [True] * 4
    assert find_cyclic_pieces(ways(2, [(IN, 0), (0, 1), (1, 1), (1, OUT)])) == [False, True]
