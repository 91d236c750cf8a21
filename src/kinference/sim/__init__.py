"""A simulated engine: the timing model (pure), and a vLLM-like server around it over real HTTP and ZMQ."""
