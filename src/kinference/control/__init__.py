"""The control plane: provider records, inference routes, and the bundle of both that sandboxes and the gateway use."""
