"""A fleet of engines and the decision core before it, in virtual time: policies compared on the same arrivals."""
