"""Detectors of 2024 to 2026 once more: float64 NumPy, one image at a time, no oodscope."""

import math

import numpy as np
import scipy.optimize
import scipy.stats
from sklearn.covariance import ledoit_wolf

from tests.detectors.twins.arithmetic import energy, unit
from tests.detectors.twins.distances import pinv, shuffled_rows
from tests.detectors.twins.first import ebo, knn, mds, msp
from tests.detectors.twins.rectifiers import count_above, largest, rectified

CASES = {
    "logitgap": [{}, {"top": 1}, {"top": 1000}],
    "ras": [{}, {"by": "magnitude"}],
    "lts": [{}, {"percentile": 65}],
    "ora": [{}, {"reduce": "mean"}],
    "core": [{}],
    "grood": [{}, {"prototype": "mix"}],
    "cfood": [{}, {"quantile": 0.05, "bank_fraction": 0.2, "seed": 3}],
    "mahalanobis": [{}, {"beta": 0.5}, {"beta": 2.0}],
    "maha_free": [{}, {"beta": 0.0}, {"beta": 0.5}],
    "average": [{}, {"members": "msp, ebo, knn"}, {"combine": "sum_z"}],
    "actsub": [{}, {"percentile": 85, "power": 0.5}, {"part": "decisive"}, {"part": "insignificant"}],
    "combood": [{}],
    "layers": [{}, {"aggregate": "fisher"}, {"detector": "mds", "aggregate": "max", "stages": "0,2"}],
    "mm_pp": [{}],
    "mfs": [{}, {"detector": "knn", "share": 0.3}, {"detector": "mds", "share": 1.0}],
    "pro": [{}],
    "ross": [{}, {"strength": 0.2, "quantile": 0.5}],
    "cover": [{}, {"temperature": 2.0}],
}


def logitgap(train, test, top=5):
    def one(z):
        ranked = sorted(z, reverse=True)
        others = ranked[1 : top + 1]
        return -math.fsum(ranked[0] - v for v in others) / len(others)

    return np.array([one(z) for z in test["logits"]])


def ras(train, test, by="value"):
    key = abs if by == "magnitude" else float
    profile = np.mean([sorted(key(v) for v in h) for h in train["features"]], axis=0)

    def change(h):
        new = np.zeros_like(h)
        for usual, i in zip(profile, sorted(range(len(h)), key=lambda i: (key(h[i]), i))):
            new[i] = usual * np.sign(h[i]) if by == "magnitude" else usual
        return new

    return rectified(train, test, change)


def lts(train, test, percentile=90):
    def one(h):
        positive = np.maximum(h, 0)
        top = sum(positive[i] for i in largest(positive, count_above(h, percentile)))
        a = (sum(positive) / top) ** 2 if top > 0 else 1.0
        return energy([a * (w @ h + b) for w, b in zip(train["weight"], train["bias"])])

    return np.array([one(h) for h in test["features"]])


def class_means(rows):
    return {c: rows["features"][rows["labels"] == c].mean(axis=0) for c in sorted(set(rows["labels"].tolist()))}


def ora(train, test, reduce="max"):
    w, centre = train["weight"], np.mean(list(class_means(train).values()), axis=0)

    def one(h, z):
        top, angles = int(np.argmax(z)), []
        for c in range(len(z)):
            if c == top:
                continue
            normal = (w[top] - w[c]) / np.linalg.norm(w[top] - w[c])
            foot = h - (z[top] - z[c]) / np.linalg.norm(w[top] - w[c]) * normal
            a, b = h - centre, foot - centre
            # twice the arc tangent of half the angle: exact for small angles too
            a, b = a * np.linalg.norm(b), b * np.linalg.norm(a)
            angles.append(2 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))
        return -(max(angles) if reduce == "max" else np.mean(angles)) / math.pi

    return np.array([one(h, z) for h, z in zip(test["features"], test["logits"])])


def core(train, test):
    weight = train["weight"]
    outside = np.eye(weight.shape[1]) - np.linalg.pinv(weight) @ weight
    residuals = {"features": np.array([outside @ h for h in train["features"]]), "labels": train["labels"]}
    usual = [unit(v) for v in class_means(residuals).values()]

    def terms(h, z):
        return np.array([-energy(z), max(unit(outside @ h) @ v for v in usual)])

    known = np.array([terms(h, z) for h, z in zip(train["features"], train["logits"])])
    return np.array(
        [
            -((terms(h, z) - known.mean(axis=0)) / known.std(axis=0)).sum()
            for h, z in zip(test["features"], test["logits"])
        ]
    )


def grood(train, test, prototype="mean"):
    means = class_means(train)
    if prototype == "mean":
        outlier = np.mean(list(means.values()), axis=0)
    else:
        second = [sorted(means, key=lambda c: (-z[c], c))[1] for z in train["logits"]]
        outlier = np.mean([(h + means[c]) / 2 for h, c in zip(train["features"], second)], axis=0)

    def gradient(h):
        distances = [np.linalg.norm(h - p) for p in [outlier, *means.values()]]
        nearest = min(distances)
        shares = [math.exp(nearest - d) for d in distances]
        return shares[0] / sum(shares) * unit(h - outlier)

    right = [int(np.argmax(z)) == y for z, y in zip(train["logits"], train["labels"])]
    bank = [gradient(h) for h, ok in zip(train["features"], right) if ok or not any(right)]
    return np.array([min(((gradient(h) - g) ** 2).sum() for g in bank) for h in test["features"]])


def cfood(train, test, quantile=0.01, bank_fraction=0.1, seed=0):
    count = len(train["features"])
    chosen = shuffled_rows(count, seed)[: round(bank_fraction * count)]
    bank = [unit(train["features"][i]) for i in chosen]

    def squared(a, b):
        return round(float(((a - b) ** 2).sum()), 9)

    between = [[squared(a, b) for j, b in enumerate(bank) if j != i] for i, a in enumerate(bank)]

    def one(h):
        away = [squared(unit(h), a) for a in bank]
        ranks = [1 + sum(d < mine for d in row) for mine, row in zip(away, between)]
        return sorted(ranks)[max(1, math.ceil(round(quantile * len(bank), 9))) - 1] / len(bank)

    return np.array([one(h) for h in test["features"]])


def radial(rows, beta):
    lengths = [np.linalg.norm(h) for h in rows["features"]]
    return rows | {"features": np.array([h / r**beta if r > 0 else h for h, r in zip(rows["features"], lengths)])}


def mahalanobis(train, test, beta=1.0):
    return mds(radial(train, beta), radial(test, beta))


def maha_free(train, test, beta=1.0):
    known, new = radial(train, beta)["features"], radial(test, beta)["features"]
    mean = known.mean(axis=0)
    precision = pinv(sum(np.outer(v - mean, v - mean) for v in known) / len(known))
    return np.array([(v - mean) @ precision @ (v - mean) for v in new])


MEMBERS = {"ebo": ebo, "knn": knn, "msp": msp}


def average(train, test, members="ebo,knn", combine="rank"):
    held_out = {key.removeprefix("val_"): column for key, column in train.items() if key.startswith("val_")}
    total = []
    for name in members.split(","):
        member = MEMBERS[name.strip()]
        known, new = member(train, held_out), member(train, test)
        spread = known.std() or 1.0
        if combine == "sum_z":
            total.append((new - known.mean()) / spread)
            continue

        def place(t, known=known, spread=spread):
            close = 1e-5 * spread
            rank = (sum(v < t - close for v in known) + sum(v <= t + close for v in known)) / 2 / len(known)
            above, below = t - max(known), min(known) - t
            return rank + (above / spread if above > close else 0) - (below / spread if below > close else 0)

        total.append(np.array([place(t) for t in new]))
    return sum(total) if combine == "sum_z" else sum(total) / len(total)


def actsub(train, test, percentile=95, power=2.0, part="both"):
    w, b = train["weight"], train["bias"]
    _, sizes, rows = np.linalg.svd(w)
    most = min(int((sizes > sizes[0] * max(w.shape) * np.finfo(float).eps).sum()), w.shape[1] - 1)

    def lengths(k):
        inside = [np.sqrt(sum((rows[j] @ h) ** 2 for j in range(k))) for h in train["features"]]
        whole = [h @ h for h in train["features"]]
        return abs(np.mean(inside) - np.mean([np.sqrt(max(v - a * a, 0)) for v, a in zip(whole, inside)]))

    k = 1 + int(np.argmin([lengths(k) for k in range(1, most + 1)]))

    def decisive(h):
        return sum(((rows[j] @ h) * rows[j] for j in range(k)), np.zeros_like(h))

    def confidence(h):
        d = decisive(h)
        top = sum(sorted(d, reverse=True)[: count_above(h, percentile)])
        factor = math.exp(sum(d) / top if top > 0 else 1.0)
        return -energy([factor * (row @ d) + bias for row, bias in zip(w, b)])

    bank = [unit(h - decisive(h)) for h in train["features"]]

    def nearness(h):
        u = unit(h - decisive(h))
        gaps = sorted(math.fsum((u - v) ** 2) / 2 for v in bank)[:10]
        return -math.log(min(max(np.mean(gaps), 1e-12), 1.0))

    floor = min(0.0, min(confidence(h) for h in train["features"]))

    def one(h):
        if part == "insignificant":
            return -nearness(h)
        if part == "decisive":
            return -confidence(h)
        a = confidence(h) - floor
        return -a * nearness(h) ** power if a >= 0 else -a

    return np.array([one(h) for h in test["features"]])


def combood(train, test):
    exponents = [boxed(column) if column.max() > column.min() else 1.0 for column in train["features"].T]

    def bend(rows):
        return np.stack([scipy.stats.yeojohnson(each, power) for each, power in zip(rows.T, exponents)], axis=1)

    bent = bend(train["features"])
    centre, spread = bent.mean(axis=0), bent.std(axis=0)
    spread[spread <= 1e-9 * (np.abs(centre) + 1)] = 1.0
    standard = (bent - centre) / spread
    inverse = np.linalg.inv(standard.T @ standard / len(standard) + np.eye(len(centre)))

    def both(rows):
        far = [math.sqrt(t @ inverse @ t) for t in (bend(rows["features"]) - centre) / spread]
        return [knn(train, rows), np.array(far)]

    return sum((new - own.mean()) / own.std() for own, new in zip(both(train), both(test)))


def boxed(column):
    """The exponent of the largest likelihood: the best of a fine grid, and a bounded search around it."""

    def loss(lmbda):
        return -scipy.stats.yeojohnson_llf(lmbda, column)

    best = min(np.arange(-5, 5.01, 0.25), key=loss)
    low, high = max(best - 0.5, -5), min(best + 0.5, 5)
    return scipy.optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x


def layers(train, test, detector="knn", aggregate="mean", stages="0,1,2"):
    twin = {"knn": knn, "mds": mds}[detector]
    found, held = [], []
    for stage in map(int, stages.split(",")):
        parts = [
            {"features": rows[key][:, stage], "labels": rows.get("labels")}
            for rows, key in ((train, "maps"), (train, "val_maps"), (test, "maps"))
        ]
        held.append(twin(parts[0], parts[1]))
        found.append(twin(parts[0], parts[2]))
    if aggregate == "fisher":
        shares = [
            [(1 + sum(v >= s - 1e-9 for v in usual)) / (len(usual) + 1) for s in new] for usual, new in zip(held, found)
        ]
        return -2 * np.log(shares).sum(axis=0)
    standard = np.array([(new - usual.mean()) / usual.std() for usual, new in zip(held, found)])
    return standard.mean(axis=0) if aggregate == "mean" else standard.max(axis=0)


def mfs(train, test, detector="mahalanobis_pp", share=0.5):
    held, mixed = train["val_features"], train["val_mixed"]

    def distance(j):
        own = sorted(held[:, j])
        width = own[-1] - own[0]
        gaps = [abs(a - b) for k in range(3) for a, b in zip(own, sorted(mixed[:, k, j]))]
        return math.fsum(gaps) / len(gaps) / width if width > 0 else 0.0

    ranked = sorted(range(held.shape[1]), key=lambda j: (-distance(j), j))
    kept = sorted(ranked[: math.ceil(round(share * held.shape[1], 9))])
    twin = {"knn": knn, "mds": mds, "mahalanobis_pp": mahalanobis}[detector]
    known, new = ({"features": rows["features"][:, kept], "labels": rows["labels"]} for rows in (train, test))
    return twin(known, new)


def mm_pp(train, test):
    def rows_of(rows, stage):
        return np.array([unit(f) for f in rows["maps"][:, stage]])

    def density(stage):
        values = np.linalg.eigvalsh(np.cov(rows_of(train, stage).T, bias=True))
        values = values[values > values.max() * len(values) * np.finfo(float).eps]
        shares = values / values.sum()
        return -(shares * np.log(shares)).sum() / math.log(len(values))

    densities = [density(stage) for stage in range(3)]
    chosen = sorted({stage for stage in (1, 2) if densities[stage] < densities[stage - 1]} | {2})
    known, new = (np.concatenate([rows_of(rows, stage) for stage in chosen], axis=1) for rows in (train, test))
    labels = train["labels"]
    means = {c: known[labels == c].mean(axis=0) for c in sorted(set(labels.tolist()))}
    offsets = known - np.array([means[c] for c in labels.tolist()])
    covariance, _ = ledoit_wolf(offsets, assume_centered=True)
    inverse = pinv(covariance)
    return np.array([min((f - m) @ inverse @ (f - m) for m in means.values()) for f in new])


def pro(train, test):
    return np.array([max(steps) for steps in test["pushed"]])


def ross(train, test, strength=0.05, quantile=0.05):
    threshold = np.quantile([np.median(-c) for c in train["val_noisy"]], quantile)

    def one(scores):
        m = np.median(-scores)
        d = np.mean(np.abs(-scores - m))
        return -min(m, threshold) - max(m - threshold, 0) * (1 + strength / d)

    return np.array([one(scores) for scores in test["noisy"]])


def cover(train, test, temperature=1.0):
    plain = msp(train, {**test, "logits": test["logits"] / temperature})
    return np.array([(s + sum(copies)) / (1 + len(copies)) for s, copies in zip(plain, test["corrupted"])])
