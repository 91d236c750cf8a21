"""Where the control plane keeps its rows, and how secrets are sealed in them."""
