"""kinference routes LLM inference requests to the model and destination that serve them best."""
