"""Is the difference more than noise? One file per question.

Two detectors on the same images: :func:`paired_delong` for AUROC, :func:`paired_bootstrap` for any metric,
:func:`mcnemar` for error rates. The same pair over many OOD sets: :func:`signed_rank`; many detectors over many
sets: :func:`friedman` and :func:`critical_difference`; all pairs over the cells of a study: :func:`pair_tests`, and
whether a cheaper study finds the same: :func:`hits_and_errors`, :func:`directions`. Folds of a cross-validation:
:func:`corrected_t`. Several comparisons at once: :func:`holm`, :func:`benjamini_hochberg`, and :func:`rank_ranges` for
a whole table.
"""
