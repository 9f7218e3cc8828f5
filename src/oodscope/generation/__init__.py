"""Images made on purpose: variations of outliers, searches among them, and the generators that draw them."""
