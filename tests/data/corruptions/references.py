"""Every corruption once more: from the published definitions, in NumPy and SciPy, one image at a time.

Nothing of oodscope is imported. Images are float64 ``[H, W, C]`` in [0, 1]; ``draw(purpose, *shape)`` gives the
uniform numbers of the image. Constants are written out again.
"""

import colorsys
import heapq
import io
import math

import numpy as np
from PIL import Image
from scipy import ndimage, stats

CIFAR, IMAGENET = "cifar", "imagenet"


def smooth(image, sigma, mode="nearest", truncate=4.0):
    spatial = (sigma, sigma) + (0,) * (image.ndim - 2)
    return ndimage.gaussian_filter(image, spatial, mode=mode, truncate=truncate)


def normal(draw, purpose, *shape):
    return stats.norm.ppf(draw(purpose, *shape))


def planes(image, draw, purpose, make):
    """Numbers drawn channel first, for an image that is channel last."""
    height, width, channels = image.shape
    return make(draw(purpose, channels, height, width)).transpose(1, 2, 0)


def gaussian_noise(image, draw, severity, scale):
    c = {CIFAR: [0.04, 0.06, 0.08, 0.09, 0.10], IMAGENET: [0.08, 0.12, 0.18, 0.26, 0.38]}[scale][severity - 1]
    return image + c * planes(image, draw, "grain", stats.norm.ppf)


def speckle_noise(image, draw, severity, scale):
    c = {CIFAR: [0.06, 0.1, 0.12, 0.16, 0.2], IMAGENET: [0.15, 0.2, 0.35, 0.45, 0.6]}[scale][severity - 1]
    return image + image * c * planes(image, draw, "grain", stats.norm.ppf)


def shot_noise(image, draw, severity, scale):
    c = {CIFAR: [500, 250, 100, 75, 50], IMAGENET: [60, 25, 12, 5, 3]}[scale][severity - 1]
    return stats.poisson.ppf(planes(image, draw, "photons", np.asarray), image * c) / c


def impulse_noise(image, draw, severity, scale):
    c = {CIFAR: [0.01, 0.02, 0.03, 0.05, 0.07], IMAGENET: [0.03, 0.06, 0.09, 0.17, 0.27]}[scale][severity - 1]
    out = image.copy()
    lost = planes(image, draw, "lost", np.asarray) <= c
    out[lost] = (planes(image, draw, "white", np.asarray) <= 0.5)[lost]
    return out


def gaussian_blur(image, draw, severity, scale):
    return smooth(image, {CIFAR: [0.4, 0.6, 0.7, 0.8, 1], IMAGENET: [1, 2, 3, 4, 6]}[scale][severity - 1])


def defocus_blur(image, draw, severity, scale):
    radius, alias = {
        CIFAR: [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
        IMAGENET: [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    }[scale][severity - 1]
    half, taps = (8, 1) if radius <= 8 else (radius, 2)
    disk = np.array(
        [[float(x * x + y * y <= radius**2) for x in range(-half, half + 1)] for y in range(-half, half + 1)]
    )
    rim = np.array([math.exp(-(d**2) / (2 * alias**2)) for d in range(-taps, taps + 1)])
    rim /= rim.sum()
    disk /= disk.sum()
    for axis in (0, 1):
        disk = ndimage.correlate1d(disk, rim, axis=axis, mode="mirror")
    return np.stack([ndimage.correlate(image[..., c], disk, mode="mirror") for c in range(image.shape[2])], axis=2)


def glass_blur(image, draw, severity, scale):
    sigma, reach, rounds = {
        CIFAR: [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
        IMAGENET: [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    }[scale][severity - 1]
    x = np.uint8(smooth(image, sigma) * 255 + 1e-6)
    height, width = x.shape[:2]
    for number in range(rounds):
        offsets = draw(f"neighbour {number}", 2, height, width)
        for h in range(height - reach, reach, -1):
            for w in range(width - reach, reach, -1):
                dy, dx = (math.floor(u * 2 * reach) - reach for u in offsets[:, h, w])
                x[h, w], x[h + dy, w + dx] = x[h + dy, w + dx], x[h, w]
    return smooth(x / 255.0, sigma)


def smear(image, radius, sigma, degrees):
    weights = [math.exp(-i * i / (2 * sigma**2)) for i in range(2 * radius + 1)]
    height, width = image.shape[:2]
    out = np.zeros_like(image)
    for i, weight in enumerate(weights):
        right = math.ceil(i * math.cos(math.radians(degrees)) - 0.5)
        down = math.ceil(i * math.sin(math.radians(degrees)) - 0.5)
        rows = np.clip(np.arange(height) + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        out += weight / sum(weights) * image[rows][:, columns]
    return out


def motion_blur(image, draw, severity, scale):
    radius, sigma = {
        CIFAR: [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
        IMAGENET: [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    }[scale][severity - 1]
    return smear(image, radius, sigma, -45 + 90 * draw("angle"))


def clipped_zoom(image, factor):
    side = image.shape[0]
    crop = math.ceil(side / factor)
    top = (side - crop) // 2
    zooms = (factor, factor) + (1,) * (image.ndim - 2)
    larger = ndimage.zoom(image[top : top + crop, top : top + crop], zooms, order=1)
    trim = (larger.shape[0] - side) // 2
    return larger[trim : trim + side, trim : trim + side]


def zoom_blur(image, draw, severity, scale):
    end, step = {
        CIFAR: [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
        IMAGENET: [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    }[scale][severity - 1]
    layers = [clipped_zoom(image, factor) for factor in np.arange(1, end, step)]
    return (image + sum(layers)) / (len(layers) + 1)


def snow(image, draw, severity, scale):
    mean, deviation, zoom, threshold, radius, sigma, keep = {
        CIFAR: [(0.1, 0.2, 1, 0.6, 8, 3, 0.95), (0.1, 0.2, 1, 0.5, 10, 4, 0.9), (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
                (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8)],
        IMAGENET: [(0.1, 0.3, 3, 0.5, 10, 4, 0.8), (0.2, 0.3, 2, 0.5, 12, 4, 0.7), (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
                   (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65), (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55)],
    }[scale][severity - 1]  # fmt: skip
    noise = mean + deviation * normal(draw, "flakes", 1, *image.shape[:2])[0]
    layer = clipped_zoom(noise, zoom)
    layer[layer < threshold] = 0
    layer = np.uint8(np.clip(layer, 0, 1) * 255 + 1e-6) / 255.0
    layer = np.uint8(smear(layer, radius, sigma, -135 + 90 * draw("wind")) * 255 + 1e-6)[..., None] / 255.0
    grey = (image @ [0.299, 0.587, 0.114])[..., None]
    return keep * image + (1 - keep) * np.maximum(image, grey * 1.5 + 0.5) + layer + np.rot90(layer, k=2)


def cloud(draw, decay, side):
    """Diamond-square, one point at a time, on a map that wraps around."""
    height = np.zeros((side, side))
    step, rough = side, 100.0
    while step >= 2:
        half = step // 2

        def put(y, x, neighbours, u, rough=rough):
            height[y, x] = sum(height[a % side, b % side] for a, b in neighbours) / 4 + rough * rough * (2 * u - 1)

        u = {kind: draw(f"plasma {kind} {step}", side // step, side // step) for kind in ("square", "right", "below")}
        places = [(i, j) for i in range(side // step) for j in range(side // step)]
        for i, j in places:
            y, x = i * step, j * step
            corners = ((y, x), (y + step, x), (y, x + step), (y + step, x + step))
            put(y + half, x + half, corners, u["square"][i, j])
        for i, j in places:
            y, x = i * step, j * step + half
            put(y, x, ((y, x - half), (y, x + half), (y - half, x), (y + half, x)), u["right"][i, j])
            y, x = i * step + half, j * step
            put(y, x, ((y - half, x), (y + half, x), (y, x - half), (y, x + half)), u["below"][i, j])
        step, rough = half, rough / decay
    height -= height.min()
    return height / height.max()


def fog(image, draw, severity, scale):
    thick, decay = {
        CIFAR: [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
        IMAGENET: [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    }[scale][severity - 1]
    side = image.shape[0]
    grey = cloud(draw, decay, 1 << (side - 1).bit_length())[:side, :side, None]
    return (image + thick * grey) * image.max() / (image.max() + thick)


def in_hsv(image, change):
    out = np.empty_like(image)
    for place in np.ndindex(image.shape[:2]):
        out[place] = colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*image[place])))
    return out


def brightness(image, draw, severity, scale):
    c = {CIFAR: [0.05, 0.1, 0.15, 0.2, 0.3], IMAGENET: [0.1, 0.2, 0.3, 0.4, 0.5]}[scale][severity - 1]
    return in_hsv(image, lambda h, s, v: (h, s, min(v + c, 1)))


def saturate(image, draw, severity, scale):
    factor, lift = {
        CIFAR: [(0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
        IMAGENET: [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)],
    }[scale][severity - 1]
    return in_hsv(image, lambda h, s, v: (h, min(s * factor + lift, 1), v))


def contrast(image, draw, severity, scale):
    c = {CIFAR: [0.75, 0.5, 0.4, 0.3, 0.15], IMAGENET: [0.4, 0.3, 0.2, 0.1, 0.05]}[scale][severity - 1]
    means = image.mean(axis=(0, 1))
    return (image - means) * c + means


def elastic_transform(image, draw, severity, scale):
    side = image.shape[0]
    alpha, sigma, move = np.array({
        CIFAR: [(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)],
        IMAGENET: [(2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)],
    }[scale][severity - 1]) * (side if scale == CIFAR else side * 244 / 224)  # fmt: skip
    middle, arm = side // 2, side // 3
    before = np.array([[middle + arm, middle + arm], [middle + arm, middle - arm], [middle - arm, middle - arm]])
    after = before + move * (2 * draw("corners", 3, 2) - 1)
    back = np.linalg.solve(np.column_stack([after, np.ones(3)]), before)  # x, y of the source from x, y, 1
    y, x = np.mgrid[:side, :side].astype(float)
    sx, sy = (back[0, k] * x + back[1, k] * y + back[2, k] for k in (0, 1))
    u = 2 * draw("ripples", 2, side, side) - 1
    dy, dx = (smooth(plane, sigma, mode="reflect", truncate=3.0) * alpha for plane in u)
    out = []
    for plane in np.moveaxis(image, 2, 0):
        stretched = ndimage.map_coordinates(plane, [sy, sx], order=1, mode="mirror")
        out.append(ndimage.map_coordinates(stretched, [y + dy, x + dx], order=1, mode="reflect"))
    return np.stack(out, axis=2)


def through_pillow(image, change):
    return np.asarray(change(Image.fromarray(np.uint8(np.round(image * 255))))) / 255.0


def pixelate(image, draw, severity, scale):
    c = {CIFAR: [0.95, 0.9, 0.85, 0.75, 0.65], IMAGENET: [0.6, 0.5, 0.4, 0.3, 0.25]}[scale][severity - 1]
    height, width = image.shape[:2]
    small = (int(width * c), int(height * c))
    return through_pillow(image, lambda p: p.resize(small, Image.Resampling.BOX).resize(p.size, Image.Resampling.BOX))


def jpeg_compression(image, draw, severity, scale):
    quality = {CIFAR: [80, 65, 58, 50, 40], IMAGENET: [25, 18, 15, 10, 7]}[scale][severity - 1]
    return through_pillow(image, lambda p: recoded(p, quality))


def recoded(picture, quality):
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=quality)
    return Image.open(stream)


def spatter(image, draw, severity, scale):
    mean, deviation, sigma, threshold, strength, mud = {
        CIFAR: [(0.62, 0.1, 0.7, 0.7, 0.5, 0), (0.65, 0.1, 0.8, 0.7, 0.5, 0), (0.65, 0.3, 1, 0.69, 0.5, 0),
                (0.65, 0.1, 0.7, 0.69, 0.6, 1), (0.65, 0.1, 0.5, 0.68, 0.6, 1)],
        IMAGENET: [(0.65, 0.3, 4, 0.69, 0.6, 0), (0.65, 0.3, 3, 0.68, 0.6, 0), (0.65, 0.3, 2, 0.68, 0.5, 0),
                   (0.65, 0.3, 1, 0.65, 1.5, 1), (0.67, 0.4, 1, 0.65, 1.5, 1)],
    }[scale][severity - 1]  # fmt: skip
    liquid = smooth(mean + deviation * normal(draw, "liquid", 1, *image.shape[:2])[0], sigma)
    liquid[liquid < threshold] = 0
    if mud:
        stain = smooth((liquid > threshold).astype(float), strength)[..., None]
        stain[stain < 0.8] = 0
        return image * (1 - stain) + stain * np.array([63, 42, 20]) / 255
    levels = np.floor(liquid * 255 + 1e-6)
    far = distances(canny(levels), 20.0)
    relief = equalised(np.floor(ndimage.uniform_filter(far, 3, mode="mirror") + 1e-6))
    kernel = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], dtype=float)
    relief = np.clip(ndimage.correlate(relief, kernel, mode="mirror"), 0, 255)
    light = levels * np.floor(ndimage.uniform_filter(relief, 3, mode="mirror") + 0.5)
    return image + strength * (light / light.max())[..., None] * np.array([175, 238, 238]) / 255


def canny(levels, low=50, high=150):
    height, width = levels.shape
    dx = ndimage.sobel(levels, axis=1, mode="nearest")
    dy = ndimage.sobel(levels, axis=0, mode="nearest")
    size = np.pad(np.abs(dx) + np.abs(dy), 1)
    kept = np.zeros((height, width), dtype=bool)
    for y, x in np.ndindex(height, width):
        here = size[y + 1, x + 1]
        if here <= low:
            continue
        gx, gy = abs(dx[y, x]), abs(dy[y, x])
        if gy * 32768 < gx * 13573:
            kept[y, x] = here > size[y + 1, x] and here >= size[y + 1, x + 2]
        elif gy * 32768 > gx * (13573 + 65536):
            kept[y, x] = here > size[y, x + 1] and here >= size[y + 2, x + 1]
        else:
            s = -1 if (dx[y, x] < 0) != (dy[y, x] < 0) else 1
            kept[y, x] = here > size[y, x + 1 - s] and here > size[y + 2, x + 1 + s]
    joined, _ = ndimage.label(kept, np.ones((3, 3)))
    strong = np.unique(joined[kept & (size[1:-1, 1:-1] > high)])
    return np.isin(joined, strong) & kept


def distances(edges, limit):
    """Dijkstra with the moves of the 5 x 5 chamfer mask."""
    height, width = edges.shape
    lengths = {(0, 1): 1.0, (1, 1): 1.4, (1, 2): 2.1969}
    moves = [
        (dy, dx, lengths[min(abs(dy), abs(dx)), max(abs(dy), abs(dx))])
        for dy in range(-2, 3) for dx in range(-2, 3)
        if (min(abs(dy), abs(dx)), max(abs(dy), abs(dx))) in lengths
    ]  # fmt: skip
    far = np.full((height, width), limit)
    far[edges] = 0.0
    queue = [(0.0, y, x) for y, x in zip(*np.nonzero(edges))]
    while queue:
        length, y, x = heapq.heappop(queue)
        if length > far[y, x]:
            continue
        for dy, dx, step in moves:
            a, b = y + dy, x + dx
            if 0 <= a < height and 0 <= b < width and length + step < far[a, b]:
                far[a, b] = length + step
                heapq.heappush(queue, (length + step, a, b))
    return far


def equalised(levels):
    histogram = np.bincount(levels.astype(int).flatten(), minlength=256)
    first = int(np.flatnonzero(histogram)[0])
    if histogram[first] == levels.size:
        return levels
    table, total = np.zeros(256), 0
    for level in range(first + 1, 256):
        total += histogram[level]
        table[level] = np.rint(total * 255.0 / (levels.size - histogram[first]))
    return table[levels.astype(int)]
