"""Pure numbers: how well scores separate OOD from ID, and how sure one can be.

Larger score = more OOD. One :class:`Ranking` sorts the scores once and gives every point metric; its AUROC
gets a DeLong interval (:func:`auroc_interval`, :func:`mean_auroc_interval`) and one over classes
(:func:`logit_interval`), the other metrics a stratified bootstrap (:func:`bootstrap_each`), rates Wilson's, runs
Student's. A :class:`Rejection` tries thresholds on images that a classifier gets right or wrong, a
:class:`Selection` walks through all of them. Names carry the positive class, and ``METRICS`` says what each means.
A classifier's confidence is judged by its :func:`reliability`, a generated benchmark by :func:`mutual_information`,
:func:`frechet_distance` and :func:`kendall`. Whether two detectors differ is the question of
:mod:`oodscope.metrics.comparison`.
"""
