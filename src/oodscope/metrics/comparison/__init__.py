"""Is the difference more than noise? One file per question.

Two detectors on the same images: :func:`paired_delong` for AUROC, :func:`paired_bootstrap` for any metric. The same
pair over many OOD sets: :func:`signed_rank`; many detectors over many sets: :func:`friedman` and
:func:`critical_difference`; all pairs over the cells of a study: :func:`pair_tests`, and whether a cheaper study finds
the same: :func:`hits_and_errors`, :func:`directions`. Folds of a cross-validation: :func:`corrected_t`. Several
comparisons at once: :func:`holm`, :func:`benjamini_hochberg`, and :func:`rank_ranges` for a whole table.

Statements beyond the images of one table: what each image, class or network contributes (:mod:`.influence`, for rates
at a quantile :mod:`.rates`, for any metric :mod:`.functionals`), all pairs and the best of a table at once
(:mod:`.simultaneous`), other networks (:mod:`.networks`), the value of a chosen detector (:mod:`.selection`), and what
a study would need (:mod:`.components`).
"""
