"""kinference routes LLM inference requests to the model and destination that serve them best."""

__version__ = "0.1.0"
