"""How work is carried out: progress and memory now; resumption and many machines build here."""
