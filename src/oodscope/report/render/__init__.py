"""The two renderers of figures: plotly for pages, matplotlib for papers."""
