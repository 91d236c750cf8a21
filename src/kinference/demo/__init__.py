"""The demonstration: simulated engines, every plane, real clients, and the same traffic under round robin."""
