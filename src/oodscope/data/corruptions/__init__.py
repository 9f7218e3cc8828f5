"""Corruptions: covariate shift on demand, after Hendrycks & Dietterich (ICLR 2019), on any device."""
