"""Requests as they come in practice, drawn from a seed: what is shared, what grows, and when it arrives."""
