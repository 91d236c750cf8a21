"""The policies of others, from their published rules, for comparison on equal signals. None of them is our default."""
